//! Entry points for fuzzing, and for the test that replays what fuzzing kept.
//!
//! Each takes any bytes and panics if a property does not hold: that is what a
//! fuzzer looks for. Not part of the crate's interface.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::names::{key_of, listed_from, name_of};

/// Names of objects, which anybody who may write to the bucket chooses.
pub fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(key) = key_of(&text) {
        assert_eq!(name_of(&key).unwrap(), text, "one name for each key");
    }
    match name_of(&text) {
        Err(error) => assert!(error.to_string().contains("shorten the prefix"), "{error}"),
        Ok(name) => {
            assert!(name.len() <= 1_024);
            // Names that no key of Tenure's has are nobody's.
            if tenures(&text) {
                assert_eq!(key_of(&name).as_deref(), Some(&*text), "a key comes back");
            }
        }
    }
    if let (Ok(from), Ok(name)) = (listed_from(&text), name_of(&text)) {
        assert!(!tenures(&text) || name.starts_with(&from), "a listing finds {name:?}");
    }
}

/// Whether a key is written as Tenure writes them: plain bytes, and `=` with two
/// digits for each other.
fn tenures(key: &str) -> bool {
    key.split('/').all(|part| {
        let mut rest = part.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = match (first, after) {
                (b'=', [high, low, after @ ..]) => {
                    let digits = [*high, *low];
                    let digits = std::str::from_utf8(&digits).unwrap_or_default();
                    let canonical =
                        |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
                    let byte = u8::from_str_radix(digits, 16).unwrap_or(b'-');
                    let plain = byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                    if plain || ![*high, *low].iter().all(canonical) {
                        return false;
                    }
                    after
                }
                (b'=', _) => return false,
                (byte, after) if byte.is_ascii_alphanumeric() || b"-_".contains(byte) => after,
                _ => return false,
            };
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_store::fuzzing::replay;

    #[test]
    fn kept_inputs_of_object_names_hold() {
        replay("object_names", names);
    }
}
