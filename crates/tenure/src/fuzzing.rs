//! Entry points for fuzzing, and for the test that replays what fuzzing kept.
//!
//! Each takes any bytes and panics if a property does not hold: that is what a
//! fuzzer looks for. Not part of the crate's interface.
#![allow(missing_docs)]

use crate::connect;

/// No input has this by chance.
const SECRET: &str = "hunter2-Zq9";

/// URLs of every scheme: whatever is given is a target or an explained refusal,
/// and a secret that stands where secrets stand is repeated in neither.
pub fn urls(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    shown(&text);
    // A fuzzer that learns the secret puts it where none stands.
    if text.contains(SECRET) {
        return;
    }
    let (head, tail) = text.split_once('\n').unwrap_or((&text, ""));
    // Before these begins what is no user and no password.
    let user = head.replace(['/', '?'], "");
    for scheme in ["postgres", "postgresql", "s3", "gs", "az", "oracle"] {
        hidden(&format!("{scheme}://{user}:{SECRET}@{tail}"));
        hidden(&format!("{scheme}://{user}:{SECRET}{tail}@host/db"));
        hidden(&format!("{scheme}://host/{user}?password={SECRET}&{tail}"));
        hidden(&format!("{scheme}://host/{user}?{tail}&password={SECRET}"));
        hidden(&format!("{scheme}://host/db?{tail}&sas={SECRET}"));
    }
    // With the scheme forgotten.
    hidden(&format!("{}{SECRET}@host/{tail}", head.replace(':', "")));
}

fn hidden(url: &str) {
    // What comes before the first colon is the scheme, and is named.
    let scheme = url.split(':').next().unwrap_or_default();
    if scheme.contains(SECRET) {
        return;
    }
    let said = shown(url);
    assert!(!said.contains(SECRET), "{url:?} is answered by {said:?}");
}

/// What is printed of a target, or of its refusal.
fn shown(url: &str) -> String {
    match connect::parse(url) {
        Ok(target) => format!("{target:?}"),
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() > 20, "{url:?} is refused with an explanation: {said}");
            said
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_testkit::{damage, replay};

    #[cfg(all(feature = "postgres", feature = "sqlite", feature = "object"))]
    #[test]
    fn kept_inputs_of_urls_hold() {
        replay("urls", urls);
    }

    #[cfg(all(feature = "postgres", feature = "sqlite", feature = "object"))]
    #[test]
    fn damaged_inputs_of_urls_hold() {
        damage("urls", urls);
    }
}
