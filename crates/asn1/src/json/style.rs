//! Styles of JSON, and the parts that a text may omit.

use super::scaled::TypeFields;

/// A style of JSON values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum JsonStyle {
    /// Raw integers, enumerations by name, bit strings in hexadecimal (X.697).
    #[default]
    Raw,
    /// The style of vanetza-nap: quantities in units with `null` if the value is not available, enumerations by number, bit
    /// strings as objects of named booleans. The table of field kinds is sorted by type name. See [`crate`].
    Scaled(&'static [TypeFields]),
}

impl JsonStyle {
    /// Returns `true` for the style of vanetza-nap.
    #[must_use]
    pub const fn is_scaled(self) -> bool {
        matches!(self, Self::Scaled(_))
    }
}

/// The form in which a text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JsonForm {
    /// The style of the values.
    pub style: JsonStyle,
    /// Header for a text without one; `None` if the text must contain the header.
    pub header: Option<HeaderDefaults>,
}

/// The header of a message whose text may omit it (`ItsPduHeader`, TS 102 894-2).
///
/// A text without the member `header` is either the message without it, or the body of the message alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderDefaults {
    /// `protocolVersion`. A text with another value is rejected.
    pub protocol_version: u8,
    /// `messageId`. A text with another value is rejected.
    pub message_id: u8,
    /// `stationId` if the text does not contain it.
    pub station_id: u32,
    /// Name of the member that contains the body: `cam`, `denm`, `payload`.
    pub body: &'static str,
}
