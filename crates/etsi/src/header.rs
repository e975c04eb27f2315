//! The header at the start of every ETSI ITS message.

/// `ItsPduHeader` (TS 102 894-2): the same six octets in release 1 and release 2.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +---------------+---------------+-------------------------------+
/// |protocolVersion|   messageId   |           stationId           |
/// +---------------+---------------+-------------------------------+
/// |           stationId           |
/// +-------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduHeader {
    /// Version of the message's format, 0 to 255.
    pub protocol_version: u8,
    /// Type of the message: 2 is a CAM, 14 a CPM.
    pub message_id: u8,
    /// Identifier of the station that generated the message.
    pub station_id: u32,
}

/// Returns the header without decoding the message, or `None` if there are fewer than six octets.
#[must_use]
pub fn pdu_header(payload: &[u8]) -> Option<PduHeader> {
    let &[protocol_version, message_id, a, b, c, d, ..] = payload else {
        return None;
    };
    Some(PduHeader { protocol_version, message_id, station_id: u32::from_be_bytes([a, b, c, d]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_six_octets_are_read() {
        let header = PduHeader { protocol_version: 2, message_id: 14, station_id: 0x0102_0304 };
        assert_eq!(pdu_header(&[2, 14, 1, 2, 3, 4, 99]), Some(header));
        assert_eq!(pdu_header(&[2, 14, 1, 2, 3, 4]), Some(header));
        assert_eq!(pdu_header(&[2, 14, 1, 2, 3]), None);
    }
}
