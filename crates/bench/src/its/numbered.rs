//! A CAM as JSON that carries a number, so that what arrives can be told from what arrived late.

use crate::error::BenchError;

/// The member that carries the number: the standard lets it be anything from 0 to 65535.
const MEMBER: &str = "\"generationDeltaTime\":";

/// A CAM's text around the number.
#[derive(Clone, Debug)]
pub(super) struct NumberedCam {
    before: String,
    after: String,
}

impl NumberedCam {
    /// The CAM of that text.
    pub(super) fn of(text: &[u8]) -> Result<Self, BenchError> {
        let without = || BenchError::broken("the CAM", "it has no generation time");
        let text = std::str::from_utf8(text).map_err(BenchError::part("the CAM"))?;
        let (before, after) = text.split_once(MEMBER).ok_or_else(without)?;
        let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        Ok(Self { before: format!("{before}{MEMBER}"), after: after.to_owned() })
    }

    /// Its text with that number.
    pub(super) fn text(&self, number: u16) -> Vec<u8> {
        format!("{}{number}{}", self.before, self.after).into_bytes()
    }

    /// The number in a text that has such a CAM somewhere.
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
    fn a_number_comes_back_wherever_the_cam_is() {
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
