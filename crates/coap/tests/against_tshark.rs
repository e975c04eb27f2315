//! tshark as an oracle: it dissects our messages to the values that were written.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

#[path = "support/tshark.rs"]
mod tshark;

use serde_json::Value;
use tshark::Transport;
use viaduct_coap::codec::{
    Block, BlockSize, Code, ContentFormat, MessageType, OptionNumber, Token, Writer, decode_uint,
};

/// Options that tshark 4.0 does not know, and reports as invalid.
const UNKNOWN: [OptionNumber; 5] = [
    OptionNumber::Q_BLOCK1,
    OptionNumber::Q_BLOCK2,
    OptionNumber::ECHO,
    OptionNumber::NO_RESPONSE,
    OptionNumber::REQUEST_TAG,
];

/// A message to write.
struct Sample {
    kind: MessageType,
    code: Code,
    token: &'static [u8],
    options: Vec<(OptionNumber, Vec<u8>)>,
    payload: Vec<u8>,
}

impl Sample {
    fn new(kind: MessageType, code: Code, options: Vec<(OptionNumber, Vec<u8>)>, payload: &[u8]) -> Self {
        Self { kind, code, token: b"tk", options, payload: payload.to_vec() }
    }

    fn get(options: Vec<(OptionNumber, Vec<u8>)>) -> Self {
        Self::new(MessageType::Confirmable, Code::GET, options, b"")
    }

    /// Returns the message as a datagram.
    fn write(&self, id: u16) -> Vec<u8> {
        let (mut buffer, token) = (vec![0; 4096], Token::new(self.token).unwrap());
        let length = self.fill(Writer::datagram(&mut buffer, self.kind, self.code, id, &token).unwrap());
        buffer.truncate(length);
        buffer
    }

    /// Writes options and payload. Returns the length of the message.
    fn fill(&self, mut writer: Writer<'_>) -> usize {
        for (number, value) in &self.options {
            writer.option(*number, value).unwrap();
        }
        writer.payload(&self.payload).unwrap();
        writer.finish()
    }

    /// Returns the message on a reliable transport.
    fn write_frame(&self) -> Vec<u8> {
        let body_octets = u32::try_from(self.write(0).len() - 4 - self.token.len()).unwrap();
        let (mut buffer, token) = (vec![0; 4096], Token::new(self.token).unwrap());
        let length = self.fill(Writer::frame(&mut buffer, self.code, &token, body_octets).unwrap());
        buffer.truncate(length);
        buffer
    }
}

fn text(number: OptionNumber, value: &str) -> (OptionNumber, Vec<u8>) {
    (number, value.as_bytes().to_vec())
}

fn uint(number: OptionNumber, value: u32) -> (OptionNumber, Vec<u8>) {
    let octets = value.to_be_bytes();
    (number, octets[value.leading_zeros() as usize / 8..].to_vec())
}

fn block(number: OptionNumber, block: u32, more: bool, size: usize) -> (OptionNumber, Vec<u8>) {
    uint(number, Block { number: block, more, size: BlockSize::at_most(size) }.value())
}

#[test]
fn each_type_and_code_is_dissected() {
    let codes = (0..=u8::MAX).map(Code::new).filter(|code| code.name().is_some() && !code.is_signal());
    let mut samples = Vec::new();
    for code in codes {
        let kinds = match (code.is_empty(), code.is_request()) {
            (true, _) => vec![MessageType::Confirmable, MessageType::Acknowledgement, MessageType::Reset],
            (_, true) => vec![MessageType::Confirmable, MessageType::NonConfirmable],
            _ => vec![MessageType::Confirmable, MessageType::NonConfirmable, MessageType::Acknowledgement],
        };
        let token: &[u8] = if code.is_empty() { b"" } else { b"12345678" };
        samples.extend(kinds.into_iter().map(|kind| Sample { token, ..Sample::new(kind, code, vec![], b"") }));
    }
    assert!(samples.len() > 90, "{}", samples.len());
    compare(&samples);
}

#[test]
fn each_option_is_dissected_with_its_value() {
    let all = vec![
        text(OptionNumber::IF_MATCH, "etag"),
        text(OptionNumber::URI_HOST, "robot.example"),
        text(OptionNumber::ETAG, "v1"),
        text(OptionNumber::ETAG, "v2"),
        text(OptionNumber::IF_NONE_MATCH, ""),
        uint(OptionNumber::OBSERVE, 0),
        uint(OptionNumber::URI_PORT, 5683),
        text(OptionNumber::LOCATION_PATH, "new"),
        text(OptionNumber::URI_PATH, "robot"),
        text(OptionNumber::URI_PATH, "pose"),
        uint(OptionNumber::CONTENT_FORMAT, ContentFormat::JSON.0.into()),
        uint(OptionNumber::MAX_AGE, 86_400),
        text(OptionNumber::URI_QUERY, "a=1"),
        text(OptionNumber::URI_QUERY, "b=2"),
        uint(OptionNumber::HOP_LIMIT, 16),
        uint(OptionNumber::ACCEPT, ContentFormat::CBOR.0.into()),
        block(OptionNumber::Q_BLOCK1, 1, true, 256),
        text(OptionNumber::LOCATION_QUERY, "c=3"),
        block(OptionNumber::BLOCK2, 3, false, 64),
        block(OptionNumber::BLOCK1, 0, true, 1024),
        uint(OptionNumber::SIZE2, 100_000),
        block(OptionNumber::Q_BLOCK2, 0, false, 1024),
        text(OptionNumber::PROXY_URI, "coap://other.example/x"),
        text(OptionNumber::PROXY_SCHEME, "coap"),
        uint(OptionNumber::SIZE1, 70_000),
        text(OptionNumber::ECHO, "fresh"),
        uint(OptionNumber::NO_RESPONSE, 2),
        text(OptionNumber::REQUEST_TAG, "tag"),
    ];
    assert!(OptionNumber::ALL.iter().all(|number| all.iter().any(|(found, _)| found == number)));
    let mut samples: Vec<_> = all.iter().map(|option| Sample::get(vec![option.clone()])).collect();
    samples.push(Sample::new(MessageType::NonConfirmable, Code::POST, all, b"payload"));
    for length in [12, 13, 255] {
        let host = (OptionNumber::URI_HOST, vec![b'h'; length]);
        samples.push(Sample::get(vec![host, (OptionNumber::PROXY_URI, vec![b'u'; length + 14])]));
    }
    compare(&samples);
}

#[test]
fn notifications_and_blocks_are_dissected_with_their_values() {
    let notification = |observe| {
        let options = vec![uint(OptionNumber::OBSERVE, observe), uint(OptionNumber::MAX_AGE, 0)];
        Sample::new(MessageType::NonConfirmable, Code::CONTENT, options, b"state")
    };
    let mut samples: Vec<_> = [1, 255, 256, 65_535, 65_536, 0xFF_FFFF].map(notification).into();
    for (number, more, size) in
        [(0, true, 16), (15, true, 16), (16, false, 32), (4095, true, 512), (0xF_FFFF, false, 1024)]
    {
        let options = vec![block(OptionNumber::BLOCK2, number, more, size)];
        samples.push(Sample::new(MessageType::Acknowledgement, Code::CONTENT, options, &vec![b'x'; size]));
        let options = vec![text(OptionNumber::URI_PATH, "map"), block(OptionNumber::BLOCK1, number, more, size)];
        samples.push(Sample::new(MessageType::Confirmable, Code::PUT, options, &vec![b'x'; size]));
    }
    compare(&samples);
}

#[test]
fn messages_on_a_stream_are_dissected_with_their_values() {
    let codes = (0..=u8::MAX).map(Code::new).filter(|code| code.name().is_some() && !code.is_empty());
    let lengths = codes.zip([0, 1, 12, 13, 14, 268, 269, 270, 1000].into_iter().cycle());
    let samples: Vec<_> = lengths
        .map(|(code, octets)| {
            let path = if code.is_request() { vec![text(OptionNumber::URI_PATH, "map")] } else { vec![] };
            Sample::new(MessageType::Confirmable, code, path, &vec![b'x'; octets])
        })
        .collect();
    let frames: Vec<_> = samples.iter().map(Sample::write_frame).collect();
    let Some(dissected) = tshark::dissect(Transport::Tcp, "coap", &frames) else { return };
    for ((sample, frame), layers) in samples.iter().zip(&frames).zip(&dissected) {
        let coap = &layers["coap"];
        assert!(!layers.to_string().contains("_ws.malformed"), "{layers}");
        assert_eq!(member(coap, "length"), frame.len().to_string());
        assert_eq!(member(coap, "code"), sample.code.octet().to_string());
        assert_eq!(octets(coap, "token"), sample.token);
        compare_options(sample, coap);
        compare_payload(sample, layers);
    }
}

fn compare(samples: &[Sample]) {
    // tshark joins messages with equal ids as retransmissions.
    let datagrams: Vec<_> = (0xAB00..).zip(samples).map(|(id, sample)| sample.write(id)).collect();
    let Some(dissected) = tshark::dissect(Transport::Udp, "coap", &datagrams) else { return };
    for ((sample, id), layers) in samples.iter().zip(0xAB00_usize..).zip(&dissected) {
        let coap = &layers["coap"];
        let unknown = sample.options.iter().any(|(number, _)| UNKNOWN.contains(number));
        assert!(unknown || !layers.to_string().contains("_ws.malformed"), "{layers}");
        for (name, value) in [
            ("version", 1),
            ("type", sample.kind as usize),
            ("token_len", sample.token.len()),
            ("code", usize::from(sample.code.octet())),
            ("mid", id),
        ] {
            assert_eq!(member(coap, name), value.to_string(), "{name} in {coap}");
        }
        if !sample.token.is_empty() {
            assert_eq!(octets(coap, "token"), sample.token);
        }
        compare_options(sample, coap);
        compare_payload(sample, layers);
    }
}

fn compare_payload(sample: &Sample, layers: &Value) {
    let coap = &layers["coap"];
    if sample.payload.is_empty() {
        assert_eq!(coap.get("coap.payload"), None);
        return;
    }
    assert_eq!(member(coap, "opt.end_marker"), "255");
    let name = if coap.get("coap.block_length").is_some() { "block_payload" } else { "payload" };
    assert_eq!(octets(coap, name), sample.payload);
}

fn compare_options(sample: &Sample, coap: &Value) {
    let trees = match &coap["coap.opt.name_tree"] {
        Value::Array(trees) => trees.clone(),
        Value::Null => vec![],
        one => vec![one.clone()],
    };
    assert_eq!(trees.len(), sample.options.len(), "{coap}");
    for ((number, value), tree) in sample.options.iter().zip(&trees) {
        let properties = [
            if number.is_critical() { "Critical" } else { "Elective" },
            if number.is_unsafe() { "Unsafe" } else { "Safe" },
            if number.is_no_cache_key() { "NoCacheKey" } else { "" },
        ];
        let description = format!("Type {}, {}", number.0, properties.join(", "));
        assert_eq!(member(tree, "opt.desc"), description.trim_end_matches(", "));
        let option = octets(tree, "opt.desc");
        assert!(option.ends_with(value) && option.len() <= value.len() + 5, "{number:?}");
        if !UNKNOWN.contains(number) && !value.is_empty() {
            compare_value(*number, value, tree);
        }
    }
}

/// Compares a value as far as tshark dissects it.
fn compare_value(number: OptionNumber, value: &[u8], tree: &Value) {
    let (uint, text) = (decode_uint(value), String::from_utf8_lossy(value).into_owned());
    let name = match number {
        OptionNumber::BLOCK1 | OptionNumber::BLOCK2 => {
            let block = Block::decode(value).unwrap();
            assert_eq!(member(tree, "opt.block_number"), block.number.to_string());
            assert_eq!(member(tree, "opt.block_mflag"), u8::from(block.more).to_string());
            assert_eq!(member(tree, "opt.block_size"), block.size.exponent().to_string());
            return;
        }
        // tshark 4.0 shows the size of a body as that of a block.
        OptionNumber::SIZE2 => return,
        OptionNumber::IF_MATCH | OptionNumber::ETAG => {
            let name = if number == OptionNumber::ETAG { "opt.etag" } else { "opt.if_match" };
            assert_eq!(octets(tree, name), value);
            return;
        }
        OptionNumber::OBSERVE => ("opt.observe", uint.unwrap().to_string()),
        OptionNumber::URI_PORT => ("opt.uri_port", uint.unwrap().to_string()),
        OptionNumber::MAX_AGE => ("opt.max_age", uint.unwrap().to_string()),
        OptionNumber::HOP_LIMIT => ("opt.hop_limit", uint.unwrap().to_string()),
        OptionNumber::SIZE1 => ("opt.size1", uint.unwrap().to_string()),
        OptionNumber::CONTENT_FORMAT => ("opt.ctype", media_type(uint.unwrap())),
        OptionNumber::ACCEPT => ("opt.accept", media_type(uint.unwrap())),
        OptionNumber::URI_HOST => ("opt.uri_host", text),
        OptionNumber::LOCATION_PATH => ("opt.location_path", text),
        OptionNumber::URI_PATH => ("opt.uri_path", text),
        OptionNumber::URI_QUERY => ("opt.uri_query", text),
        OptionNumber::LOCATION_QUERY => ("opt.location_query", text),
        OptionNumber::PROXY_URI => ("opt.proxy_uri", text),
        OptionNumber::PROXY_SCHEME => ("opt.proxy_scheme", text),
        other => panic!("{other:?} is not in this test"),
    };
    assert_eq!(member(tree, name.0), name.1, "{number:?}");
}

fn media_type(format: u32) -> String {
    ContentFormat(u16::try_from(format).unwrap()).media_type().unwrap().to_owned()
}

fn member<'a>(tree: &'a Value, name: &str) -> &'a str {
    tree[format!("coap.{name}")].as_str().unwrap_or_else(|| panic!("no {name} in {tree}"))
}

/// Returns the octets of a member.
fn octets(tree: &Value, name: &str) -> Vec<u8> {
    let digits =
        tree[format!("coap.{name}_raw")][0].as_str().unwrap_or_else(|| panic!("no octets of {name} in {tree}"));
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
