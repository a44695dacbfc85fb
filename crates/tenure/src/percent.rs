//! Paths in URLs: what would mean something else there is written as `%` and two
//! hexadecimal digits.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The URL of an SQLite file, whatever its path looks like: a `?`, a `%` or
/// bytes that are no UTF-8 are written so that the URL names that very file.
///
/// ```
/// # use std::path::Path;
/// let url = tenure::sqlite_url(Path::new("/home/what?/50%.db"));
/// assert_eq!(url, "sqlite:/home/what%3F/50%25.db");
/// ```
#[must_use]
pub fn sqlite_url(path: &Path) -> String {
    let mut url = String::from("sqlite:");
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, '%' | '?') || c.is_control() {
                let mut bytes = [0; 4];
                escape(&mut url, c.encode_utf8(&mut bytes).as_bytes());
            } else {
                url.push(c);
            }
        }
        escape(&mut url, chunk.invalid());
    }
    url
}

fn escape(url: &mut String, bytes: &[u8]) {
    for byte in bytes {
        url.push('%');
        for digit in [byte >> 4, byte & 15] {
            url.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
        }
    }
}

/// The path that stands in a URL.
pub(crate) fn path(text: &str) -> Result<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|b| *b != 0);
        let Some(byte) = byte else {
            let at = text.len() - rest.len() - 1;
            return Err(Error::Url(format!(
                "the path in the sqlite: URL has a % at byte {at} that two hexadecimal digits do \
                 not follow: write %25 for a % in a path, and %3F for a ?"
            )));
        };
        bytes.push(byte);
        rest = &rest[2..];
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn back(path: &Path) -> PathBuf {
        let url = sqlite_url(path);
        assert!(!url.contains(['?', '\n']), "{url}");
        super::path(url.strip_prefix("sqlite:").unwrap()).unwrap()
    }

    /// R14: whatever a home directory is called, its file is the one that is
    /// named.
    #[test]
    fn every_path_can_be_written_as_a_url_and_read_back() {
        for bytes in [
            b"/home/ann/t.db".as_slice(),
            b"/home/what?/x=1&y/t.db",
            b"/home/50%/%41/t.db",
            "/home/jürgen 選挙/t.db".as_bytes(),
            b"/home/\xff\xfe%\xc3/t.db",
            b"/home/new\nline/t.db",
        ] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(back(path), path);
        }
    }

    #[test]
    fn a_percent_sign_that_means_nothing_is_named_with_what_to_write() {
        for text in ["/a%", "/a%4", "/a%zz/t.db", "/a%+1", "/a%00b"] {
            let error = path(text).unwrap_err().to_string();
            assert!(error.contains("at byte 2") && error.contains("%25"), "{error}");
        }
    }
}
