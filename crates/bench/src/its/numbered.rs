//! A CAM as JSON with a number, which identifies a message that arrives after its deadline.

use crate::error::BenchError;

/// Member that carries the number; the standard permits all values from 0 to 65535.
const MEMBER: &str = "\"generationDeltaTime\":";

/// The text of a CAM before and after the number.
#[derive(Clone, Debug)]
pub(super) struct NumberedCam {
    before: String,
    after: String,
}

impl NumberedCam {
    /// Splits the text of a CAM at its number.
    pub(super) fn of(text: &[u8]) -> Result<Self, BenchError> {
        let without = || BenchError::broken("the CAM", "it has no generation time");
        let text = std::str::from_utf8(text).map_err(BenchError::part("the CAM"))?;
        let (before, after) = text.split_once(MEMBER).ok_or_else(without)?;
        let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        Ok(Self { before: format!("{before}{MEMBER}"), after: after.to_owned() })
    }

    /// Returns the text with that number.
    pub(super) fn text(&self, number: u16) -> Vec<u8> {
        format!("{}{number}{}", self.before, self.after).into_bytes()
    }

    /// Returns the number of the CAM in a text, at any position.
    pub(super) fn number(text: &[u8]) -> Option<u16> {
        let (_, after) = std::str::from_utf8(text).ok()?.split_once(MEMBER)?;
        let end = after.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(after.len());
        after.get(..end)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_number_of_a_cam_at_any_position() {
        let cam = NumberedCam::of(br#"{"cam":{"generationDeltaTime":51836,"x":1}}"#).unwrap();
        assert_eq!(cam.text(7), br#"{"cam":{"generationDeltaTime":7,"x":1}}"#);
        for number in [0, 65535] {
            let around = [b"{\"message\":", &*cam.text(number), b"}"].concat();
            assert_eq!(NumberedCam::number(&around), Some(number));
        }
        assert_eq!(NumberedCam::number(b"{}"), None);
        assert!(NumberedCam::of(b"{}").is_err());
    }
}
