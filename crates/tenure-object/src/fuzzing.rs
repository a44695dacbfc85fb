//! Entry points for fuzzing, and for the tests that run what fuzzing kept and what
//! is made from that.
//!
//! Each takes any bytes and panics if a property does not hold: that is what a
//! fuzzer looks for. Not part of the crate's interface.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::answer::{Answer, Asked, Heard, Question, Verdict};
use crate::cloud::Cloud;
use crate::gcs::{page, written};
use crate::names::{key_of, listed_from, name_of};

/// Names of objects, which any program that may write to the bucket chooses.
pub fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(key) = key_of(&text) {
        assert_eq!(name_of(&key).unwrap(), text, "one name for each key");
    }
    match name_of(&text) {
        Err(error) => assert!(error.to_string().contains("shorten the prefix"), "{error}"),
        Ok(name) => {
            assert!(name.len() <= 1_024);
            // Names that no key of Tenure's has name no election or member.
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

/// Answers to requests: a status on the first line, then whatever the service, or
/// a program between us and it, says.
pub fn answers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (status, body) = text.split_once('\n').unwrap_or(("200", &text));
    let status = status.trim().parse().unwrap_or(500);
    for cloud in Cloud::ALL {
        for asked in [Asked::Load, Asked::Create, Asked::Update, Asked::Remove, Asked::List] {
            let key = "tenure/default/elections/e";
            let question = Question { cloud, bucket: "lights", asked, key };
            let answer = Answer::read(status, body);
            judged(status, asked, question.judge(Some(Heard::Answer(answer)), body));
        }
    }
    let body = body.as_bytes();
    if let Ok(version) = written(body) {
        assert!(is_number(version.as_str()), "{version:?} would go into a URL");
    }
    let below = "tenure/default/";
    if let Ok((listed, next)) = page(body, below) {
        assert!(next.is_none_or(|token| !token.is_empty()), "the listing would begin anew");
        for one in listed {
            assert!(one.key.starts_with(below), "{} was not asked for", one.key);
            assert!(one.version.is_none_or(|version| is_number(version.as_str())));
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What an answer may be taken for, by its status alone: no body makes a success a
/// failure of which it is said that nothing was applied, or a failure a conflict.
fn judged(status: u16, asked: Asked, verdict: Verdict) {
    let writes = matches!(asked, Asked::Create | Asked::Update | Asked::Remove);
    match verdict {
        Verdict::Unchanged => assert_eq!(status, 304),
        Verdict::Absent => assert!(status == 404 && matches!(asked, Asked::Load | Asked::Remove)),
        Verdict::Conflict => assert!(writes && matches!(status, 404 | 409 | 412), "{status}"),
        Verdict::Failed(error) => {
            let said = error.to_string();
            assert!(said.contains("tenure/default/elections/e"), "of what: {said}");
            assert!(said.len() < 3_000, "an error of bearable length: {said}");
            assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
            let done = matches!(status, 200..=299);
            assert!(!done || error.may_have_applied() == writes, "{status}: {said}");
            assert!(writes || !error.may_have_applied(), "a look applies nothing: {said}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_testkit::{damage, replay};

    #[test]
    fn kept_inputs_of_object_names_hold() {
        replay("object_names", names);
    }

    #[test]
    fn kept_inputs_of_object_answers_hold() {
        replay("object_answers", answers);
    }

    #[test]
    fn damaged_inputs_of_object_answers_hold() {
        damage("object_answers", answers);
    }

    #[test]
    fn damaged_inputs_of_object_names_hold() {
        damage("object_names", names);
    }
}
