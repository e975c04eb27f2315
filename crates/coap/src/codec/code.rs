//! Codes of messages (RFC 7252, 12.1) and formats of their content (RFC 7252, 12.3).

use core::fmt;

/// A method, a response code or a signal: a class of 3 bits and a detail of 5 bits, written `class.detail`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u8);

macro_rules! codes {
    ($($name:ident = $class:literal . $detail:literal, $text:literal;)+) => {
        impl Code {
            $(
                #[doc = concat!("`", stringify!($class), ".", stringify!($detail), "` ", $text, ".")]
                pub const $name: Self = Self::of($class, $detail);
            )+

            /// Returns the name of a registered code, or `None`.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                $(if self.0 == Self::$name.0 { return Some($text); })+
                None
            }
        }
    };
}

codes! {
    EMPTY = 0 . 0, "Empty";
    GET = 0 . 1, "GET";
    POST = 0 . 2, "POST";
    PUT = 0 . 3, "PUT";
    DELETE = 0 . 4, "DELETE";
    FETCH = 0 . 5, "FETCH";
    PATCH = 0 . 6, "PATCH";
    IPATCH = 0 . 7, "iPATCH";
    CREATED = 2 . 1, "Created";
    DELETED = 2 . 2, "Deleted";
    VALID = 2 . 3, "Valid";
    CHANGED = 2 . 4, "Changed";
    CONTENT = 2 . 5, "Content";
    CONTINUE = 2 . 31, "Continue";
    BAD_REQUEST = 4 . 0, "Bad Request";
    UNAUTHORIZED = 4 . 1, "Unauthorized";
    BAD_OPTION = 4 . 2, "Bad Option";
    FORBIDDEN = 4 . 3, "Forbidden";
    NOT_FOUND = 4 . 4, "Not Found";
    METHOD_NOT_ALLOWED = 4 . 5, "Method Not Allowed";
    NOT_ACCEPTABLE = 4 . 6, "Not Acceptable";
    REQUEST_ENTITY_INCOMPLETE = 4 . 8, "Request Entity Incomplete";
    CONFLICT = 4 . 9, "Conflict";
    PRECONDITION_FAILED = 4 . 12, "Precondition Failed";
    REQUEST_ENTITY_TOO_LARGE = 4 . 13, "Request Entity Too Large";
    UNSUPPORTED_CONTENT_FORMAT = 4 . 15, "Unsupported Content-Format";
    UNPROCESSABLE_ENTITY = 4 . 22, "Unprocessable Entity";
    TOO_MANY_REQUESTS = 4 . 29, "Too Many Requests";
    INTERNAL_SERVER_ERROR = 5 . 0, "Internal Server Error";
    NOT_IMPLEMENTED = 5 . 1, "Not Implemented";
    BAD_GATEWAY = 5 . 2, "Bad Gateway";
    SERVICE_UNAVAILABLE = 5 . 3, "Service Unavailable";
    GATEWAY_TIMEOUT = 5 . 4, "Gateway Timeout";
    PROXYING_NOT_SUPPORTED = 5 . 5, "Proxying Not Supported";
    HOP_LIMIT_REACHED = 5 . 8, "Hop Limit Reached";
    CSM = 7 . 1, "CSM";
    PING = 7 . 2, "Ping";
    PONG = 7 . 3, "Pong";
    RELEASE = 7 . 4, "Release";
    ABORT = 7 . 5, "Abort";
}

impl Code {
    /// Returns the code with this octet.
    #[must_use]
    pub const fn new(octet: u8) -> Self {
        Self(octet)
    }

    /// Returns the code of a class, 0 to 7, and a detail, 0 to 31.
    #[must_use]
    pub const fn of(class: u8, detail: u8) -> Self {
        Self(class << 5 | detail & 31)
    }

    /// Returns the octet on the wire.
    #[must_use]
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// Returns the class, 0 to 7.
    #[must_use]
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Returns the detail, 0 to 31.
    #[must_use]
    pub const fn detail(self) -> u8 {
        self.0 & 31
    }

    /// Returns `true` for 0.00, the code of a message without content.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns `true` for a method, known or not.
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.0 != 0
    }

    /// Returns `true` for a response code, known or not.
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2..=5)
    }

    /// Returns `true` for the class 2.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Returns `true` for the class 7 (RFC 8323, 5).
    #[must_use]
    pub const fn is_signal(self) -> bool {
        self.class() == 7
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.class(), self.detail())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self} {}", self.name().unwrap_or("?"))
    }
}

/// Number of a media type, the value of the options Content-Format and Accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentFormat(pub u16);

impl ContentFormat {
    /// `text/plain; charset=utf-8`.
    pub const TEXT: Self = Self(0);
    /// `application/link-format` (RFC 6690).
    pub const LINK_FORMAT: Self = Self(40);
    /// `application/xml`.
    pub const XML: Self = Self(41);
    /// `application/octet-stream`.
    pub const OCTET_STREAM: Self = Self(42);
    /// `application/json`.
    pub const JSON: Self = Self(50);
    /// `application/cbor` (RFC 8949).
    pub const CBOR: Self = Self(60);
    /// `application/missing-blocks+cbor-seq` (RFC 9177).
    pub const MISSING_BLOCKS: Self = Self(272);

    /// Returns the media type, or `None` if the number has no name here.
    #[must_use]
    pub const fn media_type(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "text/plain; charset=utf-8",
            40 => "application/link-format",
            41 => "application/xml",
            42 => "application/octet-stream",
            50 => "application/json",
            60 => "application/cbor",
            272 => "application/missing-blocks+cbor-seq",
            _ => return None,
        })
    }
}
