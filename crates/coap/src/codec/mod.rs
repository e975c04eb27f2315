//! Messages on the wire, without allocation: a received datagram is borrowed, and a message is written into a buffer of
//! the caller. This module needs neither `std` nor an allocator.
//!
//! ```
//! use viaduct_coap::codec::{Code, Message, MessageType, OptionNumber, Token, Writer};
//!
//! let mut buffer = [0; 64];
//! let mut writer = Writer::datagram(&mut buffer, MessageType::Confirmable, Code::GET, 0x7D34, &Token::EMPTY)?;
//! writer.option(OptionNumber::URI_PATH, b"temperature")?;
//! let length = writer.finish();
//!
//! let message = Message::parse(&buffer[..length])?;
//! assert_eq!(message.code, Code::GET);
//! assert_eq!(message.options().next(), Some((OptionNumber::URI_PATH, &b"temperature"[..])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod code;
mod frame;
mod message;
mod option;
mod writer;

pub use block::{Block, BlockSize};
pub use code::{Code, ContentFormat};
pub use frame::{Frame, FrameError, HEADER_OCTETS_MAX};
pub use message::{Header, Message, MessageType, ParseError, Token};
pub use option::{Limit, OptionNumber, OptionsView, decode_uint, encode_uint};
pub use writer::{WriteError, Writer, option_octets};

/// The octet between the options and the payload.
const PAYLOAD_MARKER: u8 = 0xFF;
