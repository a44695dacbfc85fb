//! Token files: one token on each line, read again when they change.
//!
//! Tokens are compared by their digests in constant time. A file that cannot be read any more,
//! or is empty, lets no client in: what was read before does not count on.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{COOKIE, Scope};

type Digest = [u8; 32];

/// How long a look at the files counts.
const LOOKED: Duration = Duration::from_millis(500);
/// How many browsers may be logged in.
const BROWSERS: usize = 1_000;

/// The tokens of all scopes.
#[derive(Debug)]
pub(crate) struct Tokens {
    files: Vec<(Scope, PathBuf)>,
    read: Mutex<Read>,
    /// What a browser has in its cookie, by its digest, and the token that it stands for.
    browsers: Mutex<HashMap<Digest, Digest>>,
}

#[derive(Debug, Default)]
struct Read {
    at: Option<Instant>,
    stamps: Vec<Option<(SystemTime, u64)>>,
    tokens: Vec<(Scope, Digest)>,
}

impl Tokens {
    pub(crate) fn new(files: Vec<(Scope, PathBuf)>) -> Self {
        Self { files, read: Mutex::default(), browsers: Mutex::default() }
    }

    /// Whether every client that reaches the server may do anything.
    pub(crate) fn are_absent(&self) -> bool {
        self.files.is_empty()
    }

    /// What the caller may do; `None` without a token that is known.
    pub(crate) fn scope(&self, headers: &HeaderMap) -> Option<Scope> {
        if self.are_absent() {
            return Some(Scope::Operator);
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some(bearer) = bearer {
            let (scheme, token) = bearer.split_once(' ')?;
            return scheme
                .eq_ignore_ascii_case("bearer")
                .then(|| self.known(digest(token.trim())))?;
        }
        let cookie = cookie(headers)?;
        let browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        let token = *browsers.get(&digest(cookie))?;
        drop(browsers);
        self.known(token)
    }

    /// A cookie for one who showed this token; `None` if it is not known.
    pub(crate) fn log_in(&self, token: &str) -> Option<(Scope, String)> {
        let token = digest(token.trim());
        let scope = self.known(token)?;
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).ok()?;
        let cookie: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        if browsers.len() >= BROWSERS {
            browsers.clear();
        }
        browsers.insert(digest(&cookie), token);
        Some((scope, cookie))
    }

    /// Forgets a browser.
    pub(crate) fn log_out(&self, headers: &HeaderMap) {
        if let Some(cookie) = cookie(headers) {
            let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
            browsers.remove(&digest(cookie));
        }
    }

    /// The widest scope of a token.
    fn known(&self, token: Digest) -> Option<Scope> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh(&mut read);
        // All are compared, whichever is the one.
        let fits = |known: &Digest| bool::from(known.ct_eq(&token));
        read.tokens.iter().filter(|(_, known)| fits(known)).map(|(scope, _)| *scope).max()
    }

    fn refresh(&self, read: &mut Read) {
        if read.at.is_some_and(|at| at.elapsed() < LOOKED) {
            return;
        }
        read.at = Some(Instant::now());
        let stamp = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len()))
        };
        let stamps: Vec<_> = self.files.iter().map(|(_, path)| stamp(path)).collect();
        if stamps == read.stamps && stamps.iter().all(Option::is_some) {
            return;
        }
        read.stamps = stamps;
        read.tokens.clear();
        for (scope, path) in &self.files {
            match std::fs::read_to_string(path) {
                Ok(text) => read.tokens.extend(tokens(&text).map(|token| (*scope, digest(token)))),
                Err(error) => {
                    let path = path.display();
                    tracing::error!(%error, %path, "a token file cannot be read: its tokens admit no client");
                }
            }
        }
    }
}

/// The tokens of a file; lines that are empty or begin with `#` are none.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim() == COOKIE).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(token: &str) -> HeaderMap {
        let value = format!("Bearer {token}").parse().unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    fn cookie_of(value: &str) -> HeaderMap {
        let value = format!("a=b; {COOKIE}={value}").parse().unwrap();
        HeaderMap::from_iter([(header::COOKIE, value)])
    }

    #[test]
    fn a_token_has_the_scope_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let viewers = dir.path().join("viewers");
        let operators = dir.path().join("operators");
        std::fs::write(&viewers, "# readers\nlook\n\nboth\n").unwrap();
        std::fs::write(&operators, "steer\nboth\n").unwrap();
        let files = vec![(Scope::Viewer, viewers), (Scope::Operator, operators)];
        let tokens = Tokens::new(files);
        assert_eq!(tokens.scope(&bearer("look")), Some(Scope::Viewer));
        assert_eq!(tokens.scope(&bearer("steer")), Some(Scope::Operator));
        assert_eq!(tokens.scope(&bearer("both")), Some(Scope::Operator));
        for wrong in ["", "loo", "lookk", "# readers", "Look"] {
            assert_eq!(tokens.scope(&bearer(wrong)), None, "{wrong:?}");
        }
        assert_eq!(tokens.scope(&HeaderMap::new()), None);
    }

    /// A browser's cookie stands for its token, and ends with it.
    #[test]
    fn a_browser_is_known_for_as_long_as_its_token_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("operators");
        std::fs::write(&path, "first\n").unwrap();
        let tokens = Tokens::new(vec![(Scope::Operator, path.clone())]);
        assert!(tokens.log_in("second").is_none());
        let (_, value) = tokens.log_in("first").unwrap();
        assert_eq!(tokens.scope(&cookie_of(&value)), Some(Scope::Operator));
        // Rotated: another length, so that the change is seen whatever the clock's grain.
        std::fs::write(&path, "another\n").unwrap();
        tokens.read.lock().unwrap().at = None;
        assert_eq!(tokens.scope(&cookie_of(&value)), None);
        assert_eq!(tokens.scope(&bearer("another")), Some(Scope::Operator));
        let (_, value) = tokens.log_in("another").unwrap();
        tokens.log_out(&cookie_of(&value));
        assert_eq!(tokens.scope(&cookie_of(&value)), None);
        // Gone: no client is let in by what was read before.
        std::fs::remove_file(&path).unwrap();
        tokens.read.lock().unwrap().at = None;
        assert_eq!(tokens.scope(&bearer("another")), None);
    }
}
