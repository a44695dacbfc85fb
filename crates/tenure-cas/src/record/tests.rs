//! Bytes that any program may have written: whatever they are, reading them is an
//! answer, never a panic, and what is read can be written again.

use tenure_testkit::Dice;

use super::election::ElectionRecord;
use super::member::MemberRecord;
use super::*;

/// A record with every field filled.
const FULL: &str = r#"{"tenure":1,"election":"nightly","revision":7,"number":3,
"holder":{"member":"web-1","incarnation":"0000000000000000000000000000002a","ttl_ns":10000000000,"priority":7,
"profile":{"endpoints":["a:1"],"metadata":"00ff"},"elected_at_ms":5,"later":1},
"won":{"incarnation":"0000000000000000000000000000002a","nonce":4},
"step_down":{"reason":"r","by":"b","to":"web-2"},"paused":{"reason":"r","by":"b"},
"later":[1,{"x":null}]}"#;

/// Pieces that parsers stumble over.
const PIECES: [&str; 14] = [
    "null",
    "-1",
    "1e400",
    "18446744073709551616",
    "\"\"",
    "[]",
    "{}",
    "\"\\u0000\"",
    "\"\u{202e}\"",
    "{\"tenure\":1",
    "\u{0}",
    ",",
    "\"member\":",
    "9999999999999999999999999999",
];

fn damaged(seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut bytes = FULL.as_bytes().to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(5) {
            0 => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
            1 => bytes.truncate(at),
            2 => drop(bytes.remove(at)),
            3 => {
                let end = (at + dice.below(12)).min(bytes.len());
                let piece = PIECES[dice.below(PIECES.len())].bytes();
                drop(bytes.splice(at..end, piece));
            }
            _ => {
                let copy = bytes[at..(at + dice.below(30)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, copy));
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// B24: a damaged record is an error that names it, or a record like any other.
#[test]
fn damaged_records_are_refused_or_read_and_never_a_panic() {
    let key = "p/default/elections/nightly";
    decode::<ElectionRecord>(key, FULL.as_bytes()).expect("the whole record can be read");
    let mut refused = 0;
    let mut read = 0;
    for seed in 0..20_000 {
        let bytes = damaged(seed);
        match decode::<ElectionRecord>(key, &bytes) {
            Ok(record) => {
                read += 1;
                let again = encode(key, &record).expect("what was read can be written");
                let again: ElectionRecord = decode(key, &again).expect("and read again");
                assert_eq!(again, record, "seed {seed}");
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Foreign, "seed {seed}: {error}");
                assert!(error.to_string().contains(key), "seed {seed}: {error}");
            }
        }
        // A record of the other kind is no better.
        assert!(decode::<MemberRecord>("p/default/members/web-1", &bytes).is_err(), "seed {seed}");
    }
    assert!(refused > 1_000 && read > 100, "{refused} refused, {read} read: too one-sided");
}
