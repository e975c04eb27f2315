//! Requests and responses as values.

use bytes::Bytes;

use crate::codec::{Code, ContentFormat, OptionNumber, OptionsView, Token, decode_uint, encode_uint};

/// Options in the order of their numbers. Options of the same number keep the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(OptionNumber, Bytes)>);

impl Options {
    /// Returns the empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Copies the options of a received message. Their values share the memory of `datagram`, which must hold them.
    pub(crate) fn of(datagram: &Bytes, options: OptionsView<'_>) -> Self {
        Self(options.map(|(number, value)| (number, datagram.slice_ref(value))).collect())
    }

    /// Adds an option.
    pub fn add(&mut self, number: OptionNumber, value: impl Into<Bytes>) {
        let at = self.0.partition_point(|(before, _)| *before <= number);
        self.0.insert(at, (number, value.into()));
    }

    /// Adds an option of format uint.
    pub fn add_uint(&mut self, number: OptionNumber, value: u32) {
        let (octets, length) = encode_uint(value);
        self.add(number, Bytes::copy_from_slice(octets.get(octets.len() - length..).unwrap_or_default()));
    }

    /// Replaces all options of a number by one of format uint.
    pub fn set_uint(&mut self, number: OptionNumber, value: u32) {
        self.remove(number);
        self.add_uint(number, value);
    }

    /// Removes all options of a number.
    pub fn remove(&mut self, number: OptionNumber) {
        self.0.retain(|(found, _)| *found != number);
    }

    /// Returns the first value of a number, or `None`.
    #[must_use]
    pub fn get(&self, number: OptionNumber) -> Option<&Bytes> {
        self.all(number).next()
    }

    /// Returns the first value of a number of format uint, or `None` if there is none or it is longer than four octets.
    #[must_use]
    pub fn uint(&self, number: OptionNumber) -> Option<u32> {
        self.get(number).and_then(|value| decode_uint(value))
    }

    /// Returns all values of a number.
    pub fn all(&self, number: OptionNumber) -> impl Iterator<Item = &Bytes> {
        self.0.iter().filter(move |(found, _)| *found == number).map(|(_, value)| value)
    }

    /// Returns all options.
    pub fn iter(&self) -> impl Iterator<Item = (OptionNumber, &Bytes)> {
        self.0.iter().map(|(number, value)| (*number, value))
    }

    /// Returns `true` if there is an option with this number.
    #[must_use]
    pub fn contains(&self, number: OptionNumber) -> bool {
        self.get(number).is_some()
    }
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: Code,
    /// Options, which include the path and the query.
    pub options: Options,
    /// Body. It is split into blocks if it is larger than one block.
    pub payload: Bytes,
    /// `true` to send it as confirmable message. Reliable transports ignore it.
    pub confirmable: bool,
}

impl Request {
    /// Returns a confirmable request for a path such as `sensors/temperature`. Empty segments at the ends are ignored.
    ///
    /// Neither the path nor the query is percent-decoded.
    #[must_use]
    pub fn new(method: Code, path: &str) -> Self {
        let mut options = Options::new();
        let path = path.trim_matches('/');
        for segment in path.split('/').filter(|_| !path.is_empty()) {
            options.add(OptionNumber::URI_PATH, Bytes::copy_from_slice(segment.as_bytes()));
        }
        Self { method, options, payload: Bytes::new(), confirmable: true }
    }

    /// Returns a confirmable GET.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self::new(Code::GET, path)
    }

    /// Returns a confirmable POST with a body.
    #[must_use]
    pub fn post(path: &str, format: ContentFormat, payload: impl Into<Bytes>) -> Self {
        Self::new(Code::POST, path).with_payload(format, payload)
    }

    /// Returns a confirmable PUT with a body.
    #[must_use]
    pub fn put(path: &str, format: ContentFormat, payload: impl Into<Bytes>) -> Self {
        Self::new(Code::PUT, path).with_payload(format, payload)
    }

    /// Sets the body and its format.
    #[must_use]
    pub fn with_payload(mut self, format: ContentFormat, payload: impl Into<Bytes>) -> Self {
        self.options.set_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        self.payload = payload.into();
        self
    }

    /// Adds an item of the query, such as `rt=light`.
    #[must_use]
    pub fn with_query(mut self, item: &str) -> Self {
        self.options.add(OptionNumber::URI_QUERY, Bytes::copy_from_slice(item.as_bytes()));
        self
    }

    /// Adds an option.
    #[must_use]
    pub fn with_option(mut self, number: OptionNumber, value: impl Into<Bytes>) -> Self {
        self.options.add(number, value);
        self
    }

    /// Adds an option of format uint.
    #[must_use]
    pub fn with_uint(mut self, number: OptionNumber, value: u32) -> Self {
        self.options.add_uint(number, value);
        self
    }

    /// Sends the request as non-confirmable message.
    #[must_use]
    pub fn non_confirmable(mut self) -> Self {
        self.confirmable = false;
        self
    }

    /// Returns the segments of the path. They need not be UTF-8.
    pub fn path(&self) -> impl Iterator<Item = &Bytes> {
        self.options.all(OptionNumber::URI_PATH)
    }

    /// Returns the path with `/` between its segments and none at its ends. Octets that are not UTF-8 are replaced.
    #[must_use]
    pub fn path_string(&self) -> String {
        let mut path = String::new();
        for (index, segment) in self.path().enumerate() {
            if index > 0 {
                path.push('/');
            }
            path.push_str(&String::from_utf8_lossy(segment));
        }
        path
    }

    /// Returns the items of the query.
    pub fn query(&self) -> impl Iterator<Item = &Bytes> {
        self.options.all(OptionNumber::URI_QUERY)
    }

    /// Returns the format of the body, or `None` if it is not given.
    #[must_use]
    pub fn content_format(&self) -> Option<ContentFormat> {
        format_of(&self.options, OptionNumber::CONTENT_FORMAT)
    }

    /// Returns the format that the client accepts, or `None` if it accepts any.
    #[must_use]
    pub fn accept(&self) -> Option<ContentFormat> {
        format_of(&self.options, OptionNumber::ACCEPT)
    }
}

/// A response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Response code.
    pub code: Code,
    /// Options.
    pub options: Options,
    /// Body. It is split into blocks if it is larger than one block.
    pub payload: Bytes,
}

impl Response {
    /// Returns a response without a body.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Self { code, options: Options::new(), payload: Bytes::new() }
    }

    /// Returns a response `2.05 Content` with a body.
    #[must_use]
    pub fn content(format: ContentFormat, payload: impl Into<Bytes>) -> Self {
        Self::new(Code::CONTENT).with_payload(format, payload)
    }

    /// Returns an error with a diagnostic text (RFC 7252, 5.5.2).
    #[must_use]
    pub fn diagnostic(code: Code, text: &str) -> Self {
        Self { payload: Bytes::copy_from_slice(text.as_bytes()), ..Self::new(code) }
    }

    /// Sets the body and its format.
    #[must_use]
    pub fn with_payload(mut self, format: ContentFormat, payload: impl Into<Bytes>) -> Self {
        self.options.set_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        self.payload = payload.into();
        self
    }

    /// Adds an option.
    #[must_use]
    pub fn with_option(mut self, number: OptionNumber, value: impl Into<Bytes>) -> Self {
        self.options.add(number, value);
        self
    }

    /// Adds an option of format uint.
    #[must_use]
    pub fn with_uint(mut self, number: OptionNumber, value: u32) -> Self {
        self.options.add_uint(number, value);
        self
    }

    /// Sets the time in seconds for which a cache may use the response. Without it, the time is 60 s.
    #[must_use]
    pub fn with_max_age(mut self, seconds: u32) -> Self {
        self.options.set_uint(OptionNumber::MAX_AGE, seconds);
        self
    }

    /// Returns the format of the body, or `None` if it is not given.
    #[must_use]
    pub fn content_format(&self) -> Option<ContentFormat> {
        format_of(&self.options, OptionNumber::CONTENT_FORMAT)
    }

    /// Returns the time in seconds for which a cache may use the response (RFC 7252, 5.10.5).
    #[must_use]
    pub fn max_age(&self) -> u32 {
        self.options.uint(OptionNumber::MAX_AGE).unwrap_or(60)
    }
}

fn format_of(options: &Options, number: OptionNumber) -> Option<ContentFormat> {
    options.uint(number).and_then(|value| u16::try_from(value).ok()).map(ContentFormat)
}

/// A received request or response, without what is specific to the transport.
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    pub(crate) code: Code,
    pub(crate) token: Token,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
}
