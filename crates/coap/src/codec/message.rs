//! The message format of RFC 7252, 3.

use core::fmt;

use super::{Code, OptionsView, PAYLOAD_MARKER};

/// Version of the protocol in each message.
const VERSION: u8 = 1;
/// Octets before the token.
pub(super) const FIXED_OCTETS: usize = 4;

/// Type of a message (RFC 7252, 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageType {
    /// CON: it is sent again until it is acknowledged.
    Confirmable,
    /// NON: it is not acknowledged.
    NonConfirmable,
    /// ACK of a confirmable message, with or without a response.
    Acknowledgement,
    /// RST: the receiver cannot process the message.
    Reset,
}

impl MessageType {
    pub(super) const fn bits(self) -> u8 {
        self as u8
    }

    const fn of(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }
}

/// A token of 0 to 8 octets, which matches responses to requests.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    octets: [u8; Self::OCTETS_MAX],
    length: u8,
}

impl Token {
    /// Largest number of octets.
    pub const OCTETS_MAX: usize = 8;
    /// The token without octets.
    pub const EMPTY: Self = Self { octets: [0; Self::OCTETS_MAX], length: 0 };

    /// Returns the token with these octets, or `None` if there are more than 8.
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut token = Self { octets: [0; Self::OCTETS_MAX], length: u8::try_from(octets.len()).ok()? };
        token.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(token)
    }

    /// Returns the octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.octets.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Returns the number of octets, 0 to 8.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

/// Reasons for which a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParseError {
    /// The message ends within its header or its token.
    Truncated,
    /// The version is not 1.
    Version,
    /// The length of the token is 9 to 15, which is reserved.
    TokenLength,
    /// An empty message (code 0.00) has a token, options or a payload.
    EmptyWithContent,
    /// The class of the code is 1, 6 or 7, which is reserved, or the code is not permitted for the type.
    Code,
    /// The delta or length of an option has the reserved value 15.
    OptionReserved,
    /// An option ends after the message.
    OptionTruncated,
    /// The number of an option is larger than 65535.
    OptionNumber,
    /// A payload marker is followed by no payload.
    PayloadMissing,
}

impl ParseError {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Truncated,
        Self::Version,
        Self::TokenLength,
        Self::EmptyWithContent,
        Self::Code,
        Self::OptionReserved,
        Self::OptionTruncated,
        Self::OptionNumber,
        Self::PayloadMissing,
    ];

    /// Returns the reason as a constant text for counters and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "version",
            Self::TokenLength => "token_length",
            Self::EmptyWithContent => "empty_with_content",
            Self::Code => "code",
            Self::OptionReserved => "option_reserved",
            Self::OptionTruncated => "option_truncated",
            Self::OptionNumber => "option_number",
            Self::PayloadMissing => "payload_missing",
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("malformed message: ")?;
        formatter.write_str(self.label())
    }
}

impl core::error::Error for ParseError {}

/// The first four octets of a message, which suffice to reject it.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |Ver| T |  TKL  |      Code     |          Message ID           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type.
    pub kind: MessageType,
    /// Length of the token, 0 to 15.
    pub token_length: u8,
    /// Code.
    pub code: Code,
    /// Message ID.
    pub id: u16,
}

impl Header {
    /// Parses the header of a message, whatever follows it.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] or [`ParseError::Version`].
    pub fn parse(octets: &[u8]) -> Result<Self, ParseError> {
        let Some([first, code, high, low]) = octets.first_chunk::<FIXED_OCTETS>() else {
            return Err(ParseError::Truncated);
        };
        if first >> 6 != VERSION {
            return Err(ParseError::Version);
        }
        Ok(Self {
            kind: MessageType::of(first >> 4),
            token_length: first & 0xF,
            code: Code::new(*code),
            id: u16::from_be_bytes([*high, *low]),
        })
    }
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type.
    pub kind: MessageType,
    /// Code.
    pub code: Code,
    /// Message ID.
    pub id: u16,
    /// Token.
    pub token: Token,
    options: OptionsView<'a>,
    /// Payload. It can be empty.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses a datagram. All options are checked.
    ///
    /// # Errors
    /// The reason for which the message is malformed. RFC 7252, 4.2 and 4.3 require a Reset only for a confirmable one.
    pub fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let header = Header::parse(octets)?;
        let rest = octets.get(FIXED_OCTETS..).unwrap_or_default();
        let (token, body) = split_token(header.token_length, rest)?;
        let (options, payload) = split_body(body)?;
        let message = Self { kind: header.kind, code: header.code, id: header.id, token, options, payload };
        if header.code.is_empty() && octets.len() > FIXED_OCTETS {
            return Err(ParseError::EmptyWithContent);
        }
        if !permitted(header.kind, header.code) {
            return Err(ParseError::Code);
        }
        Ok(message)
    }

    /// Returns the options in the order of their numbers.
    #[must_use]
    pub fn options(&self) -> OptionsView<'a> {
        self.options
    }
}

/// Returns `true` if a message of the type may have the code (RFC 7252, table 1).
fn permitted(kind: MessageType, code: Code) -> bool {
    match kind {
        MessageType::Confirmable => code.is_empty() || code.is_request() || code.is_response(),
        MessageType::NonConfirmable => code.is_request() || code.is_response(),
        MessageType::Acknowledgement => code.is_empty() || code.is_response(),
        MessageType::Reset => code.is_empty(),
    }
}

pub(super) fn split_token(length: u8, octets: &[u8]) -> Result<(Token, &[u8]), ParseError> {
    let length = usize::from(length);
    if length > Token::OCTETS_MAX {
        return Err(ParseError::TokenLength);
    }
    let (token, rest) = octets.split_at_checked(length).ok_or(ParseError::Truncated)?;
    Ok((Token::new(token).ok_or(ParseError::TokenLength)?, rest))
}

/// Checks the options and separates them from the payload.
pub(super) fn split_body(body: &[u8]) -> Result<(OptionsView<'_>, &[u8]), ParseError> {
    let mut rest = body;
    let mut number = 0;
    while let Some(first) = rest.first() {
        if *first == PAYLOAD_MARKER {
            let options = body.get(..body.len() - rest.len()).unwrap_or_default();
            let payload = rest.get(1..).unwrap_or_default();
            return if payload.is_empty() {
                Err(ParseError::PayloadMissing)
            } else {
                Ok((OptionsView::checked(options), payload))
            };
        }
        let (next, _, after) = super::option::read(number, rest)?;
        (number, rest) = (next.0, after);
    }
    Ok((OptionsView::checked(body), &[]))
}
