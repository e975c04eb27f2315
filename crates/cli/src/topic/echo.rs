//! `viaduct topic echo TOPIC|PATTERN`

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::{Context as _, anyhow, bail};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde::Serialize;
use serde_json::value::RawValue;
use viaduct_bus::MessageFormat;
use viaduct_messages::topic::{check_pattern, is_name};
use viaduct_messages::viaduct::its::V2xMessage;
use viaduct_messages::viaduct::observe::echo_part::Part;
use viaduct_messages::viaduct::observe::{EchoClock, EchoPart, EchoSample, EchoStamp, EchoStampKind, EchoType};
use viaduct_units::Tai;
use viaduct_v2x_json::protobuf::JsonOf;
use viaduct_v2x_json::{message_json, timestamp_text, write_message as write_v2x_message};

use super::message::{Cut, write_message};
use super::ros::RosType;
use super::text::time;
use super::{NodeArgument, client};
use crate::output::{print_line, print_note};

/// Longest part of a stream: a message of 16 MiB and its metadata.
const PART_OCTETS_MAX: usize = 17 << 20;

/// Number of types that the node remembers.
const TYPES_MAX: u32 = 1024;

/// Octets of the longest varint.
const LENGTH_OCTETS_MAX: usize = 10;

/// Type whose JSON contains the decoded ETSI message.
const V2X_MESSAGE: &str = "viaduct.its.V2xMessage";

/// Encodings of messages whose content is shown.
const PROTOBUF: &str = MessageFormat::Protobuf.message_encoding();
const JSON: &str = MessageFormat::Json.message_encoding();

/// Topics, number of samples, and output format.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of a topic, or a pattern: `*` matches one level, `**` all remaining levels.
    #[arg(value_name = "TOPIC|PATTERN", value_parser = pattern)]
    pattern: String,
    #[command(flatten)]
    node: NodeArgument,
    /// Exit after this number of samples. Default: run until Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print each sample as one line of JSON, with the same names and values as on MQTT.
    #[arg(long)]
    json: bool,
    /// Longest list, text and byte field that is shown whole, in elements, characters and octets. Longer ones are cut.
    #[arg(long, value_name = "N", default_value_t = 128, conflicts_with = "json")]
    truncate_length: usize,
    /// Show all fields whole.
    #[arg(long, conflicts_with_all = ["truncate_length", "json"])]
    full: bool,
    /// Show only the length of lists and byte fields.
    #[arg(long)]
    no_arr: bool,
}

/// Parses a name or pattern of the command line.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    check_pattern(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { pattern, node: NodeArgument { node }, .. } = arguments;
    let (_, snapshot) = client::topics(node).await?;
    if is_name(pattern) {
        snapshot.find(pattern)?;
    } else if snapshot.matching(pattern).next().is_none() {
        print_note(format_args!(
            "viaduct: node `{}` has no topic that matches `{pattern}` yet; waiting",
            snapshot.node
        ));
    }
    let mut parts = Parts { body: client::echo(node, pattern).await?, buffer: BytesMut::new() };
    let mut printer = Printer::new(arguments);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        match parts.next().await.with_context(|| format!("{node}: the stream is malformed"))? {
            None => bail!("{node}: the node has ended the stream"),
            Some(Part::Type(new)) => printer.add_type(&new),
            Some(Part::Sample(sample)) => {
                print_line(printer.print(&sample)?.trim_end())?;
                left -= 1;
            }
        }
    }
    Ok(())
}

/// The parts of a stream.
struct Parts {
    body: Incoming,
    /// Octets received of the next part.
    buffer: BytesMut,
}

impl Parts {
    /// Returns the next part, or `None` at the end of the stream.
    async fn next(&mut self) -> anyhow::Result<Option<Part>> {
        loop {
            if let Some(part) = take_part(&mut self.buffer)? {
                return Ok(Some(part));
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => bail!("it ended within a sample"),
            }
        }
    }
}

/// Removes the first part from the buffer and returns it, or `None` if it is incomplete. Skips parts of unknown kind.
fn take_part(buffer: &mut BytesMut) -> anyhow::Result<Option<Part>> {
    loop {
        let Some(length_octets) = buffer.iter().take(LENGTH_OCTETS_MAX).position(|octet| octet & 0x80 == 0) else {
            if buffer.len() >= LENGTH_OCTETS_MAX {
                bail!("a length has more than {LENGTH_OCTETS_MAX} octets");
            }
            return Ok(None);
        };
        let length = prost::decode_length_delimiter(&buffer[..=length_octets])?;
        if length > PART_OCTETS_MAX {
            bail!("a part of {length} octets is longer than {PART_OCTETS_MAX}");
        }
        if buffer.len() < length_octets + 1 + length {
            return Ok(None);
        }
        buffer.advance(length_octets + 1);
        if let Some(part) = EchoPart::decode(buffer.split_to(length).freeze())?.part {
            return Ok(Some(part));
        }
    }
}

/// A message type of the stream.
struct StreamType {
    full_name: String,
    /// Serialisation of the messages as in MCAP.
    encoding: String,
    /// `None` if it is not a protobuf type, if the node has no schema, or if the type is not in it.
    descriptor: Option<MessageDescriptor>,
    /// The definition of a type of ROS, or `None` if the type is not one or the definition cannot be read.
    ros: Option<RosType>,
}

/// Formats samples as text or JSON.
struct Printer {
    /// Types by their number in the stream.
    types: HashMap<u32, StreamType>,
    cut: Cut,
    json: bool,
}

impl Printer {
    fn new(arguments: &Arguments) -> Self {
        let length = (!arguments.full).then_some(arguments.truncate_length);
        Self { types: HashMap::new(), cut: Cut { length, no_arr: arguments.no_arr }, json: arguments.json }
    }

    fn add_type(&mut self, new: &EchoType) {
        let descriptor_set = (new.message_encoding == PROTOBUF).then(|| new.schema.clone());
        let pool = descriptor_set.and_then(|set| DescriptorPool::decode(set).ok());
        let descriptor = pool.and_then(|pool| pool.get_message_by_name(&new.full_name));
        let (full_name, encoding) = (new.full_name.clone(), new.message_encoding.clone());
        let ros = RosType::new(&encoding, &full_name, &new.schema);
        // The node sends a type again if it is older than the latest ones.
        self.types.retain(|id, _| new.id.saturating_sub(*id) < TYPES_MAX);
        self.types.insert(new.id, StreamType { full_name, encoding, descriptor, ros });
    }

    fn print(&self, sample: &EchoSample) -> anyhow::Result<String> {
        let known = self.types.get(&sample.type_id);
        let known = known.ok_or_else(|| anyhow!("a sample of `{}` arrived before its type", sample.topic))?;
        if self.json { self.json(sample, known) } else { Ok(self.text(sample, known)) }
    }

    fn text(&self, sample: &EchoSample, known: &StreamType) -> String {
        let mut text = heading(sample, known);
        if let Some(ros) = known.ros.as_ref().filter(|_| !sample.skipped) {
            match ros.text(&octets(sample), self.cut) {
                Ok(message) => text.push_str(&message),
                Err(problem) => text.push_str(&format!("# {problem}\n")),
            }
            text.push_str("---");
            return text;
        }
        // Writing into a String cannot fail.
        let _ = match message(sample, known) {
            Ok(message) => {
                write_message(&message, self.cut, 0, &mut text);
                Ok(())
            }
            Err(_) if known.encoding == JSON && !sample.skipped => {
                writeln!(text, "{}", String::from_utf8_lossy(&octets(sample)).escape_debug())
            }
            Err(problem) => writeln!(text, "# {problem}"),
        };
        text.push_str("---");
        text
    }

    fn json(&self, sample: &EchoSample, known: &StreamType) -> anyhow::Result<String> {
        let (message, problem) = match self.message_json(sample, known) {
            Ok(json) => (Some(RawValue::from_string(json)?), None),
            Err(problem) => (None, Some(problem)),
        };
        Ok(serde_json::to_string(&Line {
            topic: &sample.topic,
            r#type: &known.full_name,
            sequence: sample.sequence,
            missed: sample.missed,
            origin: time_text(sample.origin_tai_ns),
            stamps: sample.stamps.iter().map(Stamp::of).collect(),
            length: sample.length,
            message,
            problem,
        })?)
    }

    fn message_json(&self, sample: &EchoSample, known: &StreamType) -> Result<String, String> {
        if known.encoding == PROTOBUF && known.full_name == V2X_MESSAGE && !sample.skipped {
            return v2x_json(&octets(sample)).ok_or_else(|| malformed(known));
        }
        if let Some(ros) = known.ros.as_ref().filter(|_| !sample.skipped) {
            return ros.json(&octets(sample), self.cut);
        }
        if known.encoding == JSON && !sample.skipped {
            return String::from_utf8(octets(sample).to_vec()).map_err(|_| malformed(known));
        }
        let message = message(sample, known)?;
        let whole = JsonOf::new(&message);
        let json = if self.cut.no_arr { whole.without_arrays() } else { whole };
        serde_json::to_string(&json).map_err(|error| error.to_string())
    }
}

/// One sample as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    topic: &'a str,
    r#type: &'a str,
    sequence: u64,
    /// Samples of the topic that were not sent since the previous one.
    missed: u64,
    origin: String,
    stamps: Vec<Stamp>,
    /// Length of the encoded message in octets.
    length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Box<RawValue>>,
    /// Reason why there is no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct Stamp {
    hop: String,
    kind: &'static str,
    at: String,
    /// State of the clock, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'static str>,
    /// Largest error of a synchronised clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_error_us: Option<f64>,
}

impl Stamp {
    fn of(stamp: &EchoStamp) -> Self {
        let clock = match stamp.clock() {
            EchoClock::Unknown => None,
            EchoClock::Shared => Some("shared"),
            EchoClock::Synchronised => Some("synchronised"),
            EchoClock::Unsynchronised => Some("unsynchronised"),
        };
        let is_bounded = stamp.clock() == EchoClock::Synchronised;
        Self {
            hop: stamp.hop.clone(),
            kind: kind(stamp),
            at: time_text(stamp.at_tai_ns),
            clock,
            clock_error_us: is_bounded.then_some(stamp.clock_error_ns as f64 / 1e3),
        }
    }
}

fn kind(stamp: &EchoStamp) -> &'static str {
    match stamp.kind() {
        EchoStampKind::Published => "published",
        EchoStampKind::Taken => "taken",
        EchoStampKind::Sent => "sent",
        EchoStampKind::Received => "received",
    }
}

/// Returns the uncertainty of a reception by the clocks of both nodes, as it is appended to its time.
fn clocks(sent: &EchoStamp, received: &EchoStamp) -> String {
    match (sent.clock(), received.clock()) {
        (_, EchoClock::Shared) => String::new(),
        (EchoClock::Synchronised, EchoClock::Synchronised) => {
            let error_ns = sent.clock_error_ns.saturating_add(received.clock_error_ns);
            format!(" +-{}", time(error_ns as f64 / 1e3))
        }
        (EchoClock::Unsynchronised, _) | (_, EchoClock::Unsynchronised) => " (clocks not synchronised)".to_owned(),
        _ => " (clocks unknown)".to_owned(),
    }
}

/// Returns comment lines: topic, type, number and length; the origin; and the time of each stamp, one line for each component.
fn heading(sample: &EchoSample, known: &StreamType) -> String {
    let EchoSample { topic, sequence, missed, length, origin_tai_ns, .. } = sample;
    let missed = if *missed > 0 { format!("  missed {missed} before it") } else { String::new() };
    let mut text = format!("# {topic}  {}  number {sequence}  {length} octets{missed}\n", known.full_name);
    let _ = write!(text, "# origin {}", time_text(*origin_tai_ns));
    let mut before: Option<&EchoStamp> = None;
    for stamp in &sample.stamps {
        if before.is_none_or(|before| before.hop != stamp.hop) {
            let _ = write!(text, "\n#   {}", stamp.hop.escape_debug());
        }
        let micros = (stamp.at_tai_ns.saturating_sub(*origin_tai_ns)) as f64 / 1e3;
        let sign = if micros < 0.0 { '-' } else { '+' };
        let _ = write!(text, "  {} {sign}{}", kind(stamp), time(micros.abs()));
        if let Some(before) = before.filter(|before| before.kind() == EchoStampKind::Sent)
            && stamp.kind() == EchoStampKind::Received
        {
            text.push_str(&clocks(before, stamp));
        }
        before = Some(stamp);
    }
    text.push('\n');
    text
}

/// Decodes the message by its schema. Returns the reason if it cannot be shown.
fn message(sample: &EchoSample, known: &StreamType) -> Result<DynamicMessage, String> {
    if sample.skipped {
        return Err(format!("the message is too long: {} octets", sample.length));
    }
    if known.encoding != PROTOBUF {
        return Err(match known.encoding.as_str() {
            "" => format!("`{}` is opaque: only the components know its content", known.full_name),
            encoding => format!("`{}` is encoded as {encoding}, which is not shown", known.full_name),
        });
    }
    let descriptor =
        known.descriptor.clone().ok_or_else(|| format!("the node has no schema of `{}`", known.full_name))?;
    DynamicMessage::decode(descriptor, octets(sample)).map_err(|_| malformed(known))
}

fn malformed(known: &StreamType) -> String {
    format!("the octets are not a message of `{}`", known.full_name)
}

fn octets(sample: &EchoSample) -> Bytes {
    match sample.octets.as_slice() {
        [one] => one.clone(),
        pieces => pieces.concat().into(),
    }
}

/// Returns a V2X message in the JSON format of MQTT and the API, with the ETSI message if it can be decoded.
fn v2x_json(octets: &Bytes) -> Option<String> {
    let message = V2xMessage::decode(octets.clone()).ok()?;
    let json = message_json(&message).unwrap_or_else(|_| {
        let mut envelope = Vec::new();
        write_v2x_message(&message, None, &mut envelope);
        envelope
    });
    String::from_utf8(json).ok()
}

/// Returns a time in RFC 3339 format.
fn time_text(tai_nanos: i64) -> String {
    timestamp_text(Tai::from_nanos(tai_nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_messages::DESCRIPTOR_SET;
    use viaduct_messages::foxglove::Log;
    use viaduct_messages::viaduct::its::{Direction, MessageType};
    use viaduct_messages::viaduct::observe::EchoStamp;

    fn printer(json: bool, full_name: &str, schema: &'static [u8]) -> Printer {
        let cut = Cut { length: Some(128), no_arr: false };
        let mut printer = Printer { types: HashMap::new(), cut, json };
        let (schema, message_encoding) = (Bytes::from_static(schema), PROTOBUF.to_owned());
        printer.add_type(&EchoType { id: 1, full_name: full_name.into(), schema, message_encoding });
        printer
    }

    fn sample(octets: &[u8]) -> EchoSample {
        let (front, back) = octets.split_at(octets.len() / 2);
        EchoSample {
            type_id: 1,
            topic: "log".into(),
            sequence: 7,
            missed: 2,
            origin_tai_ns: Tai::from_unix_nanos(0).nanos(),
            stamps: vec![EchoStamp {
                hop: "writer".into(),
                at_tai_ns: Tai::from_unix_nanos(12_000).nanos(),
                ..EchoStamp::default()
            }],
            length: octets.len() as u64,
            skipped: false,
            octets: vec![Bytes::copy_from_slice(front), Bytes::copy_from_slice(back)],
        }
    }

    fn log() -> EchoSample {
        sample(&Log { message: "hello there".into(), line: 3, ..Default::default() }.encode_to_vec())
    }

    #[test]
    fn the_text_of_a_sample_has_its_topic_type_and_hops() {
        let text = printer(false, "foxglove.Log", DESCRIPTOR_SET).print(&log()).unwrap();
        let heading = "# log  foxglove.Log  number 7  18 octets  missed 2 before it\n\
                       # origin 1970-01-01T00:00:00.000000Z\n\
                       #   writer  published +12.0 us\n";
        assert!(text.starts_with(heading), "{text}");
        assert!(text.contains("\nmessage: \"hello there\"\n") && text.ends_with("\nline: 3\n---"), "{text}");
    }

    #[test]
    fn a_path_over_two_machines_has_the_uncertainty_of_their_clocks() {
        let stamp = |hop: &str, kind: EchoStampKind, micros: i64, clock: EchoClock| EchoStamp {
            hop: hop.into(),
            at_tai_ns: Tai::from_unix_nanos(micros * 1_000).nanos(),
            kind: kind.into(),
            clock: clock.into(),
            clock_error_ns: if clock == EchoClock::Synchronised { 250_000 } else { 0 },
        };
        let heading_of = |sender, receiver| {
            let stamps = vec![
                stamp("writer", EchoStampKind::Published, 5, EchoClock::Unknown),
                stamp("uplink", EchoStampKind::Taken, 10, EchoClock::Unknown),
                stamp("uplink", EchoStampKind::Sent, 12, sender),
                stamp("edge", EchoStampKind::Received, -500, receiver),
                stamp("edge", EchoStampKind::Published, 2_000, EchoClock::Unknown),
            ];
            let text = printer(false, "foxglove.Log", DESCRIPTOR_SET).print(&EchoSample { stamps, ..log() }).unwrap();
            text.lines().skip(2).take(3).map(str::to_owned).collect::<Vec<_>>()
        };
        let lines = heading_of(EchoClock::Synchronised, EchoClock::Synchronised);
        assert_eq!(lines[..2], ["#   writer  published +5.00 us", "#   uplink  taken +10.0 us  sent +12.0 us"]);
        for (sender, receiver, shown) in [
            (EchoClock::Synchronised, EchoClock::Synchronised, " +-500 us"),
            (EchoClock::Synchronised, EchoClock::Shared, ""),
            (EchoClock::Synchronised, EchoClock::Unsynchronised, " (clocks not synchronised)"),
            (EchoClock::Unknown, EchoClock::Synchronised, " (clocks unknown)"),
        ] {
            let expected = format!("#   edge  received -500 us{shown}  published +2.00 ms");
            assert_eq!(heading_of(sender, receiver)[2], expected);
        }
    }

    #[test]
    fn a_line_of_json_has_the_message_and_its_metadata() {
        let text = printer(true, "foxglove.Log", DESCRIPTOR_SET).print(&log()).unwrap();
        let expected = r#"{"topic":"log","type":"foxglove.Log","sequence":7,"missed":2,"origin":"1970-01-01T00:00:00.000000Z","stamps":[{"hop":"writer","kind":"published","at":"1970-01-01T00:00:00.000012Z"}],"length":18,"message":{"level":"unknown","message":"hello there","name":"","file":"","line":3}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn a_v2x_message_has_the_same_json_as_on_mqtt() {
        let (direction, kind) = (Direction::Received.into(), MessageType::Denm.into());
        let message = V2xMessage { direction, r#type: kind, station_id: 5, ..Default::default() };
        let text = printer(true, V2X_MESSAGE, DESCRIPTOR_SET).print(&sample(&message.encode_to_vec())).unwrap();
        assert!(text.contains(r#""message":{"direction":"received","type":"denm","#), "{text}");
    }

    #[test]
    fn a_message_that_cannot_be_shown_is_replaced_by_the_reason() {
        let skipped = EchoSample { skipped: true, length: 1 << 25, octets: Vec::new(), ..log() };
        let broken = sample(&[0xFF; 5]);
        for (full_name, schema, sample, problem) in [
            ("foxglove.Log", DESCRIPTOR_SET, &skipped, "the message is too long: 33554432 octets"),
            ("foxglove.Log", DESCRIPTOR_SET, &broken, "the octets are not a message of `foxglove.Log`"),
            (V2X_MESSAGE, DESCRIPTOR_SET, &skipped, "the message is too long: 33554432 octets"),
            ("x.Unknown", DESCRIPTOR_SET, &log(), "the node has no schema of `x.Unknown`"),
            ("x.Unknown", b"", &log(), "the node has no schema of `x.Unknown`"),
        ] {
            let text = printer(false, full_name, schema).print(sample).unwrap();
            assert!(text.ends_with(&format!("\n# {problem}\n---")), "{text}");
            let json = printer(true, full_name, schema).print(sample).unwrap();
            assert!(json.ends_with(&format!(",\"problem\":\"{problem}\"}}")), "{json}");
        }
        let of_unknown_type = EchoSample { type_id: 9, ..log() };
        assert!(printer(true, "foxglove.Log", DESCRIPTOR_SET).print(&of_unknown_type).is_err());
    }

    #[test]
    fn parts_are_read_from_chunks_of_any_size() {
        let parts: Vec<EchoPart> = (1..4).map(|_| EchoPart { part: Some(Part::Sample(log())) }).collect();
        let mut octets: Vec<u8> = parts.iter().flat_map(EchoPart::encode_length_delimited_to_vec).collect();
        octets.splice(0..0, [0]);
        let mut buffer = BytesMut::new();
        let mut taken = 0;
        for octet in octets {
            buffer.extend_from_slice(&[octet]);
            taken += usize::from(take_part(&mut buffer).unwrap() == Some(Part::Sample(log())));
        }
        assert_eq!((taken, buffer.len()), (3, 0));
    }

    #[test]
    fn an_impossible_length_is_rejected() {
        for octets in [[0xFF; 10].as_slice(), &[0xFF, 0xFF, 0xFF, 0x7F]] {
            assert!(take_part(&mut BytesMut::from(octets)).is_err(), "{octets:?}");
        }
    }
}
