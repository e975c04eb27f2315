//! The name in a stamp.

/// Maximum length of a name, in bytes.
const LENGTH_MAX: usize = 15;

/// Name of a component that stamps messages: the first 15 bytes of the component's name.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopName {
    /// The text, and NUL up to the end.
    bytes: [u8; LENGTH_MAX],
}

impl HopName {
    /// Shortens a name to at most 15 bytes, at a character boundary. A NUL ends the name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = name.split('\0').next().unwrap_or_default();
        let mut length = name.len().min(LENGTH_MAX);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; LENGTH_MAX];
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self { bytes }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(LENGTH_MAX);
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }

    /// Returns `true` if this is no name.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes[0] == 0
    }
}

impl std::fmt::Debug for HopName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl std::fmt::Display for HopName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_a_character_boundary() {
        assert_eq!(HopName::new("station").as_str(), "station");
        assert_eq!(HopName::new("123456789012345").as_str(), "123456789012345");
        assert_eq!(HopName::new("12345678901234ä").as_str(), "12345678901234");
        assert!(HopName::new("").is_empty() && HopName::new("\0a").is_empty() && !HopName::new("a").is_empty());
    }
}
