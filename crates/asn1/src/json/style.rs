//! How JSON shows values, and what a text may leave out.

/// How values are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonStyle {
    /// As ASN.1 has them: raw integers, enumerations by name, bit strings in hexadecimal (X.697).
    #[default]
    Raw,
    /// As vanetza-nap has them: quantities in units with `null` where the value is not available, enumerations by number,
    /// bit strings as objects of named truth values. [`crate`] says more.
    Scaled,
}

/// What a text is read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonForm {
    /// How values are shown.
    pub style: JsonStyle,
    /// What the text need not say.
    pub header: Option<HeaderDefaults>,
}

/// The header of a message whose text need not have one (`ItsPduHeader`, TS 102 894-2).
///
/// A text without the member `header` is either the message without it, or the body of the message alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderDefaults {
    /// `protocolVersion`. A text that says another one is refused.
    pub protocol_version: u8,
    /// `messageId`. A text that says another one is refused.
    pub message_id: u8,
    /// `stationId` where the text does not say one.
    pub station_id: u32,
    /// The member of the message that is its body: `cam`, `denm`, `payload`.
    pub body: &'static str,
}
