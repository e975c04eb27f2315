//! The policy USER_DATA: pairs `key=value;`.
//!
//! Sources: REP-2016 (type hash); rmw_dds_common and rmw_cyclonedds (`enclave=`, `typehash=`).

/// Prefix of the type hashes of REP-2016, version 1, and the number of hexadecimal digits after it.
const HASH_PREFIX: &str = "RIHS01_";
const HASH_DIGITS: usize = 64;

/// Returns the USER_DATA of a participant whose nodes have no enclave of their own.
#[must_use]
pub const fn enclave() -> &'static str {
    "enclave=/;"
}

/// Returns the USER_DATA of an endpoint with a type hash.
#[must_use]
pub fn type_hash(hash: &str) -> String {
    format!("typehash={hash};")
}

/// Returns `true` if a text is a type hash: `RIHS01_` and 64 hexadecimal digits.
#[must_use]
pub fn is_type_hash(text: &str) -> bool {
    let digits = text.strip_prefix(HASH_PREFIX).unwrap_or_default();
    digits.len() == HASH_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Returns the type hash in the USER_DATA of an endpoint, or `None` if it contains none.
#[must_use]
pub fn read_type_hash(user_data: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(user_data).ok()?;
    text.split(';').find_map(|pair| pair.strip_prefix("typehash=")).filter(|hash| is_type_hash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_hash_is_found_between_other_pairs() {
        let hash = format!("RIHS01_{}", "0123456789abcdef".repeat(4));
        assert_eq!(read_type_hash(type_hash(&hash).as_bytes()), Some(&hash[..]));
        assert_eq!(read_type_hash(format!("a=b;typehash={hash};c=d;").as_bytes()), Some(&hash[..]));
        for other in ["", "enclave=/;", "typehash=;", "typehash=RIHS02_00;", &hash, &format!("typehash={hash}0;")] {
            assert_eq!(read_type_hash(other.as_bytes()), None, "{other}");
        }
        assert_eq!(read_type_hash(b"typehash=\xFF;"), None);
    }
}
