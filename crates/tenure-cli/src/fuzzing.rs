//! Entry points for fuzzing, and for the test that replays what fuzzing kept.
//!
//! Each takes any bytes and panics if a property does not hold: that is what a
//! fuzzer looks for. A program has no interface to call them by, so the fuzz
//! targets are built from this very file.
// Where they are, these are not out of reach.
#![allow(unreachable_pub)]

use tenure_api::span;

use crate::config::Config;
use crate::redact::redact;

/// No input has this by chance.
const SECRET: &str = "hunter2-Zq9";

/// The config file. A mistake in it is named; the store's password, which may
/// stand right beside it, is not.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(refused) = Config::parse(&text) {
        assert!(refused.len() > 10, "{refused}");
    }
    // A fuzzer that learns the secret puts it where none stands.
    if text.contains(SECRET) {
        return;
    }
    for around in [
        format!("store = \"postgres://u:{SECRET}@h/d\"\n{text}"),
        format!("store = \"postgres://u:{SECRET}@h/d{text}"),
        format!("{text}\nstore = 'postgres://u:{SECRET}@h/d'"),
    ] {
        if let Err(refused) = Config::parse(&around) {
            assert!(!refused.contains(SECRET), "{refused}");
        }
    }
    if let Ok(config) = Config::parse(&format!("store = 'x'\n{text}")) {
        assert_eq!(config.store.as_deref(), Some("x"));
    }
}

/// Durations as people write them.
pub fn durations(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match span::parse(&text) {
        Err(refused) => {
            assert!(refused.contains("is not a duration"), "{refused}");
            assert!(refused.contains("250ms"), "{refused}");
        }
        Ok(found) => {
            let exact = format!("{}us", found.as_micros());
            let micros = span::parse(&exact).map(|again| again.as_micros());
            assert_eq!(micros, Ok(found.as_micros()), "{text:?}");
            // What is shown is rounded, and is a duration itself.
            for shown in [span::show(found), span::roughly(found)] {
                let again = span::parse(&shown);
                assert!(again.is_ok_and(|again| again <= found), "{text:?}: {shown}");
            }
        }
    }
}

/// Store URLs as they are shown: a secret that stands where secrets stand is
/// not, whatever is around it and in it.
pub fn redaction(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (head, tail) = text.split_once('\n').unwrap_or((&text, ""));
    if text.contains(SECRET) {
        return;
    }
    for url in [
        format!("postgres://{head}:{SECRET}{tail}@host/db"),
        format!("postgres://{head}:{tail}{SECRET}@host/db"),
        format!("postgres:{head}:{SECRET}{tail}@host/db"),
        format!("postgres://u:{SECRET}@{text}"),
        format!("s3://bucket/{head}?{tail}&aws_secret_access_key={SECRET}"),
        format!("az://c?sas={SECRET}&{text}"),
        format!("postgres://host/db?{head}&password={SECRET}"),
    ] {
        let shown = redact(&url);
        assert!(!shown.contains(SECRET), "{url:?} is shown as {shown:?}");
        assert!(redact(&shown).len() <= shown.len() + 8, "{shown:?} stays as it is");
    }
    // Nothing else is lost of a URL without a secret.
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    if plain {
        for url in [format!("sqlite:/{text}"), format!("postgres://u@h:5432/{text}?poll_ms=5")] {
            assert_eq!(redact(&url), url);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_testkit::{damage, replay};

    #[test]
    fn kept_inputs_of_config_files_hold() {
        replay("config", config);
    }

    #[test]
    fn kept_inputs_of_durations_hold() {
        replay("durations", durations);
    }

    #[test]
    fn kept_inputs_of_redaction_hold() {
        replay("redaction", redaction);
    }

    #[test]
    fn damaged_inputs_of_config_hold() {
        damage("config", config);
    }

    #[test]
    fn damaged_inputs_of_durations_hold() {
        damage("durations", durations);
    }

    #[test]
    fn damaged_inputs_of_redaction_hold() {
        damage("redaction", redaction);
    }
}
