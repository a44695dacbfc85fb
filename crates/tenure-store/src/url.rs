//! The options of a store's URL, read alike by every store.
//!
//! No error repeats a value: it may be the rest of a password.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::{Error, ErrorKind, Result};

/// The shortest and the longest interval that a store may be told to wait.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(86_400);

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// The options after the `?` of a URL: each key with its decoded value.
///
/// ```
/// use tenure_store::url::options;
/// let all: Vec<_> = options("region=eu&prefix=a%2Fb&").collect::<Result<_, _>>().unwrap();
/// assert_eq!(all, [("region", "eu".to_owned()), ("prefix", "a/b".to_owned())]);
/// ```
pub fn options(query: &str) -> impl Iterator<Item = Result<(&str, String)>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((key, decode(value)?))
    })
}

/// Refuses an option that the store does not have, and names those that it has.
///
/// ```
/// use tenure_store::url::unknown;
/// let error = unknown("sqlite", "colour", &["journal_keep", "share_file"]).to_string();
/// assert!(error.contains("\"colour\"") && error.contains("share_file"), "{error}");
/// ```
#[must_use]
pub fn unknown(scheme: &str, key: &str, known: &[&str]) -> Error {
    refuse(format!("{scheme}: does not know the option {key:?}"))
        .remedy(format!("it knows {}", known.join(", ")))
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

/// A whole number.
///
/// ```
/// use tenure_store::url::number;
/// assert_eq!(number("journal_keep", "250").unwrap(), 250);
/// assert!(number("journal_keep", "-1").is_err());
/// ```
pub fn number(key: &str, value: &str) -> Result<u64> {
    let most = u64::MAX;
    let unusable = || refuse(format!("{key} in the URL is not a whole number up to {most}"));
    value.parse().map_err(|_| unusable())
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
    number(key, value).map(Duration::from_millis)
}

/// Refuses an interval of a store (`what`) that is not between 10 ms and one day.
///
/// ```
/// use std::time::Duration;
/// use tenure_store::url::check_interval;
/// assert!(check_interval("poll interval of the SQLite store", Duration::from_secs(1)).is_ok());
/// assert!(check_interval("poll interval of the SQLite store", Duration::ZERO).is_err());
/// ```
pub fn check_interval(what: &str, interval: Duration) -> Result<()> {
    if (SHORTEST..=LONGEST).contains(&interval) {
        return Ok(());
    }
    let remedy = format!("let it be {SHORTEST:?} to one day");
    Err(refuse(format!("the {what} is {interval:?}")).remedy(remedy))
}

/// Undoes percent-encoding. A `%` that two hexadecimal digits do not follow stays as it
/// is.
///
/// ```
/// use tenure_store::url::decode;
/// assert_eq!(decode("a%2Fb%zz").unwrap(), "a/b%zz");
/// assert!(decode("%ff").is_err());
/// ```
pub fn decode(text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| refuse("an option in the URL is not UTF-8"))?;
    Ok(decoded.into_owned())
}
