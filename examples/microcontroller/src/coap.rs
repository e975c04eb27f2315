//! A client of CoAP.

use viaduct_coap::codec::{Code, ContentFormat, Message, MessageType, OptionNumber, Token, WriteError, Writer};

/// A robot that sends confirmable POSTs to one resource. It expects the response within the ACK.
#[derive(Debug)]
pub struct Robot<'a> {
    /// Path of the resource, one segment.
    path: &'a str,
    /// Message ID of the request.
    id: u16,
}

impl<'a> Robot<'a> {
    /// Returns a robot that begins with this message ID, which should be random.
    #[must_use]
    pub const fn new(path: &'a str, id: u16) -> Self {
        Self { path, id }
    }

    fn write(&self, reading: &[u8], buffer: &mut [u8]) -> Result<usize, WriteError> {
        let mut writer = Writer::datagram(buffer, MessageType::Confirmable, Code::POST, self.id, &Token::EMPTY)?;
        writer.option(OptionNumber::URI_PATH, self.path.as_bytes())?;
        writer.uint(OptionNumber::CONTENT_FORMAT, u32::from(ContentFormat::JSON.0))?;
        writer.payload(reading)?;
        Ok(writer.finish())
    }
}

impl crate::Robot for Robot<'_> {
    fn transmit(&mut self, reading: &[u8], buffer: &mut [u8]) -> usize {
        self.write(reading, buffer).unwrap_or(0)
    }

    fn handle(&mut self, datagram: &[u8]) -> bool {
        let Ok(message) = Message::parse(datagram) else { return false };
        if message.kind != MessageType::Acknowledgement || message.id != self.id {
            return false;
        }
        self.id = self.id.wrapping_add(1);
        message.code.is_success()
    }
}
