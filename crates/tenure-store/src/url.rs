//! The options of a store's URL, read alike by every store.
//!
//! No error repeats a value: it may be the rest of a password.

use std::time::Duration;

use crate::{Error, ErrorKind, Result};

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// A yes or a no.
///
/// ```
/// use tenure_store::url::flag;
/// assert!(flag("migrate", "yes").unwrap());
/// assert!(flag("migrate", "perhaps").unwrap_err().to_string().contains("migrate"));
/// ```
pub fn flag(key: &str, value: &str) -> Result<bool> {
    match value {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err(refuse(format!("{key} in the URL is neither 0 nor 1"))),
    }
}

/// A whole number of milliseconds.
///
/// ```
/// use std::time::Duration;
/// use tenure_store::url::millis;
/// assert_eq!(millis("poll_ms", "250").unwrap(), Duration::from_millis(250));
/// assert!(millis("poll_ms", "1.5").is_err());
/// ```
pub fn millis(key: &str, value: &str) -> Result<Duration> {
    let number = value.parse().map(Duration::from_millis);
    number.map_err(|_| refuse(format!("{key} in the URL is not a whole number")))
}

/// Undoes percent-encoding.
///
/// ```
/// use tenure_store::url::decode;
/// assert_eq!(decode("a%2Fb%zz").unwrap(), "a/b%zz");
/// assert!(decode("%ff").is_err());
/// ```
pub fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).map_err(|_| refuse("an option in the URL is not UTF-8"))
}
