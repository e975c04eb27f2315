//! The name in a stamp.

/// Maximum length of a name, in bytes.
const LENGTH_MAX: usize = 15;

/// Name of a component that stamps messages: the first 15 bytes of the component's name.
#[derive(Clone, Copy, Default, Eq)]
pub struct HopName {
    /// The text, and NUL up to the end.
    bytes: [u8; LENGTH_MAX],
}

impl HopName {
    /// Name of the entry into the system.
    pub(crate) const ORIGIN: Self = Self { bytes: *b"origin\0\0\0\0\0\0\0\0\0" };

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

impl HopName {
    /// Returns the name as a number with the same order. Each publisher looks up names, and two numbers are compared without a
    /// loop.
    #[inline]
    fn number(&self) -> u128 {
        let mut bytes = [0; LENGTH_MAX + 1];
        bytes[..LENGTH_MAX].copy_from_slice(&self.bytes);
        u128::from_be_bytes(bytes)
    }
}

impl PartialEq for HopName {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl PartialOrd for HopName {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HopName {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}

impl std::hash::Hash for HopName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number().hash(state);
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
        assert_eq!(HopName::new("origin"), HopName::ORIGIN);
        assert!(HopName::new("ab") < HopName::new("abc") && HopName::new("abc") < HopName::new("b"));
        assert!(HopName::new("").is_empty() && HopName::new("\0a").is_empty() && !HopName::new("a").is_empty());
    }
}
