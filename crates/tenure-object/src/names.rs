//! What an object is called.
//!
//! All three clouds take names of 1,024 bytes. A key of Tenure's is longer if a
//! namespace and an election have long names in a script other than Latin, whose
//! bytes are written as `=E9=81=B8…`; and services that keep objects as files take
//! 255 bytes between two slashes. A part of a key that is longer than [`LONG`] is
//! therefore written in a denser way: `==` and base64 of the bytes it stands for,
//! broken into several parts if that is still too long, of which all but the last
//! end with `=`. Nothing else begins with `==`, so that names and keys are one to
//! one.

use tenure_store::{Error, ErrorKind, Result};

/// The longest part of a key that is used as it is, and the most digits in one
/// part of a name.
const LONG: usize = 240;
/// The longest name of an object, in bytes, in all three clouds.
const MOST: usize = 1_024;
/// What a dense part begins with.
const DENSE: &str = "==";

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The name of the object for a key.
pub(crate) fn name_of(key: &str) -> Result<String> {
    let parts: Vec<String> = key.split('/').map(part_name).collect();
    let name = parts.join("/");
    if name.len() > MOST {
        let text = format!("the name of an object would be {} bytes long: {name:?}", name.len());
        return Err(Error::new(ErrorKind::Invalid, text)
            .remedy(format!("shorten the prefix: object storage takes {MOST} bytes")));
    }
    Ok(name)
}

/// The key whose object has this name; `None` for one that no key has.
pub(crate) fn key_of(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    let mut digits = String::new();
    let mut broken = false;
    for part in name.split('/') {
        match part.strip_prefix(DENSE) {
            None if broken => return None,
            None => parts.push(part.to_owned()),
            Some(more) => {
                broken = more.ends_with('=');
                digits.push_str(more.trim_end_matches('='));
                if !broken {
                    parts.push(escaped(&bytes_of(&digits)?));
                    digits.clear();
                }
            }
        }
    }
    let key = parts.join("/");
    // There is one way to write each key.
    let same = !broken && name_of(&key).is_ok_and(|made| made == name);
    same.then_some(key)
}

/// Up to where a listing by `prefix` must begin: names in its last, unfinished
/// part may be dense. What is found is to be sifted by key.
pub(crate) fn listed_from(prefix: &str) -> Result<String> {
    match prefix.rsplit_once('/') {
        Some((folders, _)) => name_of(&format!("{folders}/")),
        None => Ok(String::new()),
    }
}

fn part_name(part: &str) -> String {
    if part.len() <= LONG {
        return part.to_owned();
    }
    let Some(bytes) = plain(part) else { return part.to_owned() };
    let mut digits = base64(&bytes);
    let mut name = String::new();
    while digits.len() > LONG {
        let rest = digits.split_off(LONG);
        name.push_str(&format!("{DENSE}{digits}=/"));
        digits = rest;
    }
    name + DENSE + &digits
}

/// The bytes that a part stands for, if it is written as Tenure writes them.
fn plain(part: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'=' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    (escaped(&bytes) == part).then_some(bytes)
}

fn escaped(bytes: &[u8]) -> String {
    let mut part = String::with_capacity(bytes.len() * 3);
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("={byte:02X}"));
        }
    }
    part
}

/// Base64 in the alphabet for URLs, without padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for three in bytes.chunks(3) {
        let at = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let all = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..=three.len() {
            let digit = (all >> (18 - 6 * n)) & 63;
            text.push(char::from(DIGITS[digit as usize]));
        }
    }
    text
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    for four in text.as_bytes().chunks(4) {
        let mut all = 0_u32;
        for n in 0..4 {
            let digit = match four.get(n) {
                Some(digit) => DIGITS.iter().position(|d| d == digit)?,
                None => 0,
            };
            all = all << 6 | u32::try_from(digit).ok()?;
        }
        let [_, first, second, third] = all.to_be_bytes();
        bytes.extend([first, second, third].iter().take(four.len().checked_sub(1)?));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_names_as_they_are() {
        for key in ["tenure/default/elections/nightly-report", "a=2Fb/c", "x", "a/"] {
            assert_eq!(name_of(key).unwrap(), key);
            assert_eq!(key_of(key).as_deref(), Some(key));
        }
    }

    /// The longest names that the protocol allows fit, and come back.
    #[test]
    fn long_keys_fit_and_come_back() {
        for length in 81..=200 {
            let part = "=C3=BC".repeat(length / 2) + &"=81".repeat(length % 2);
            let key = format!("{}/{part}/members/{part}", "p".repeat(200));
            let name = name_of(&key).unwrap();
            assert!(name.len() <= MOST && name.contains("/=="), "{name}");
            assert!(name.split('/').all(|part| part.len() <= 255), "{name}");
            assert_eq!(key_of(&name), Some(key));
        }
    }

    #[test]
    fn a_name_that_cannot_be_is_refused_with_its_length() {
        let said = name_of(&"p/".repeat(513)).unwrap_err().to_string();
        assert!(said.contains("1026 bytes") && said.contains("shorten the prefix"), "{said}");
    }

    #[test]
    fn names_that_no_key_has_name_nothing() {
        for name in ["==", "==A", "==YQ", "==%%%%", "a/==YWJj", "==YQ=", "==YQ=/x"] {
            assert_eq!(key_of(name), None, "{name}");
        }
    }

    #[test]
    fn listings_begin_at_a_finished_part() {
        assert_eq!(listed_from("a/b/").unwrap(), "a/b/");
        assert_eq!(listed_from("a/b").unwrap(), "a/");
        assert_eq!(listed_from("a").unwrap(), "");
        let long = "=81".repeat(100);
        assert!(listed_from(&format!("a/{long}/x")).unwrap().starts_with("a/=="));
    }
}
