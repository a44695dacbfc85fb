//! What is stored: the golden files, what is kept of unknown fields, and what
//! happens to records that cannot be read.

use tenure_testkit::Dice;

use super::*;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::ElectionRecord;
use crate::record::history::{HISTORY, Win};
use crate::record::member::MemberRecord;
use crate::record::name::{FloorRecord, NameRecord};
use crate::record::{decode, encode};

const ELECTION: &str = include_str!("golden/election.json");
const MEMBER: &str = include_str!("golden/member.json");
const STANDING: &str = include_str!("golden/standing.json");
const NAME: &str = include_str!("golden/name.json");
const DROPPED: &str = include_str!("golden/dropped.json");
const FLOOR: &str = include_str!("golden/floor.json");

/// The same value, whatever the blanks.
fn same(bytes: &[u8], golden: &str) {
    let written: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
    assert_eq!(written, golden, "written: {written:#}");
}

/// A format that older and newer versions share is not changed by accident.
#[test]
fn records_of_format_one_are_read_and_written_as_they_always_were() {
    let election: ElectionRecord = decode("x/nightly-report", ELECTION.as_bytes()).unwrap();
    assert_eq!(election.number().get(), 7);
    assert_eq!(election.holder.as_ref().unwrap().ttl_ns, TTL);
    assert_eq!(election.step_down().unwrap().to.unwrap().as_str(), "web-2");
    assert_eq!(election.entries().len(), 3);
    same(&encode("e", &election).unwrap(), ELECTION);
    let member: MemberRecord = decode("x/web-1", MEMBER.as_bytes()).unwrap();
    assert_eq!(member.profile.metadata(), [0xff, 0x00]);
    assert!(member.condemned && member.proves_over(Incarnation::from_u128(0x2a)).is_some());
    assert!(member.proves_over(Incarnation::from_u128(0x29)).is_some());
    assert!(member.proves_over(Incarnation::from_u128(0x28)).is_none());
    same(&encode("m", &member).unwrap(), MEMBER);
    let standing: CandidaciesRecord = decode("x/web-1", STANDING.as_bytes()).unwrap();
    assert_eq!(standing.elections[&named("nightly-report")].order, 4);
    same(&encode("s", &standing).unwrap(), STANDING);
    let name: NameRecord = decode("x/user=2F42", NAME.as_bytes()).unwrap();
    let row = name.row().unwrap();
    assert_eq!((row.token, row.rev), (Token::new(7), Rev::new(9)));
    assert_eq!((row.owner, row.value.data()), (Some(member.member()), &[0xff, 0x00][..]));
    same(&encode("n", &name).unwrap(), NAME);
    let dropped: NameRecord = decode("x/user=2F42", DROPPED.as_bytes()).unwrap();
    assert_eq!((dropped.row(), dropped.rev), (None, 9));
    same(&encode("n", &dropped).unwrap(), DROPPED);
    let floor: FloorRecord = decode("x/names", FLOOR.as_bytes()).unwrap();
    assert_eq!(floor.floor, 9);
    same(&encode("f", &floor).unwrap(), FLOOR);
}

fn put(wire: &Wire, key: &str, bytes: &[u8]) {
    let expect = match ready(wire.load(key, None)).unwrap() {
        Loaded::Found { version, .. } => Expect::Version(version),
        _ => Expect::Absent,
    };
    let swapped = ready(wire.swap(key, expect, bytes.to_vec())).unwrap();
    assert!(matches!(swapped, Swapped::Stored(_)));
}

fn stored(wire: &Wire, key: &str) -> serde_json::Value {
    match ready(wire.load(key, None)).unwrap() {
        Loaded::Found { bytes, .. } => serde_json::from_slice(&bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// What [`Register`] asks of versions is enough only if nothing is ever written
/// twice: a version may be a hash of the content.
#[test]
fn no_content_comes_back() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    let mut seen = vec![stored(&wire, "tenure/default/elections/e")];
    for amend in [pause("e"), resume("e"), step_down("e", "x"), pause("e"), resume("e")] {
        assert!(matches!(a.amend(amend), Amended::Done { .. }));
        let now = stored(&wire, "tenure/default/elections/e");
        assert!(!seen.contains(&now), "{now}");
        seen.push(now);
    }
    a.release("e", Some(1));
    let released = stored(&wire, "tenure/default/elections/e");
    assert_eq!(released.get("step_down"), None, "it ends with its term (E5)");
    assert!(seen.iter().all(|earlier| earlier["number"] == released["number"]));
}

/// A newer version of the same format may add fields; an older one that renews
/// in between must not drop them.
#[test]
fn unknown_fields_survive_a_renewal() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    let c = Process::joined(&wire, "c", 3);
    c.lose("e", 1);
    let keys =
        ["tenure/default/elections/e", "tenure/default/members/a", "tenure/default/standing/c"];
    for key in keys {
        let mut record = stored(&wire, key);
        record["colour"] = serde_json::json!({"of": "future"});
        put(&wire, key, record.to_string().as_bytes());
    }
    assert!(a.keeps("e", 1));
    a.amend(pause("e"));
    c.lose("e", 2);
    c.bid_with("e", 3, 7);
    for key in keys {
        assert_eq!(stored(&wire, key)["colour"]["of"], "future", "{key}");
    }
}

#[test]
fn a_record_of_a_newer_format_or_a_damaged_one_is_foreign_and_left_alone() {
    let key = "tenure/default/elections/e";
    let newer = ELECTION.replacen("\"tenure\": 1", "\"tenure\": 2", 1);
    let huge = vec![b' '; MAX_RECORD + 1];
    let cases: [(&[u8], &str); 6] = [
        (newer.as_bytes(), "upgrade this program"),
        (ELECTION.as_bytes(), "was copied here"),
        (b"", "damaged"),
        (b"{\"tenure\":1}", "damaged"),
        (b"\xff\xfe<html>", "not of Tenure"),
        (&huge, "no record of ours"),
    ];
    for (bytes, says) in cases {
        let wire = Wire::default();
        let a = Process::joined(&wire, "a", 1);
        put(&wire, key, bytes);
        let writes = wire.inner.writes();
        let error = a.try_bid("e", 1, 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
        assert!(error.to_string().contains(says) && error.to_string().contains(key), "{error}");
        assert!(!error.may_have_applied());
        assert_eq!(wire.inner.writes(), writes);
        assert_eq!(a.win("f", 1), 1, "the others go on");
        let all = ready(a.store.read(&ns(), &Query::everything())).unwrap();
        assert_eq!(all.elections.len(), 1, "they are shown");
        assert_eq!(all.members[0].holds, 1);
    }
}

/// Numbers as large as they get, written by a stranger: an error, no panic,
/// and no number twice.
#[test]
fn an_election_that_used_up_its_numbers_says_so() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    a.release("e", Some(1));
    let key = "tenure/default/elections/e";
    let mut record = stored(&wire, key);
    for counter in ["number", "revision"] {
        record[counter] = serde_json::json!(u64::MAX);
    }
    put(&wire, key, record.to_string().as_bytes());
    let error = a.try_bid("e", 2, 100).unwrap_err();
    assert!(error.to_string().contains("last number"), "{error}");
    assert!(matches!(a.amend(pause("e")), Amended::Done { .. }));
}

/// A damaged member's record hinders no other member.
#[test]
fn elections_go_on_beside_a_damaged_member() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    put(&wire, "tenure/default/members/odd", b"?");
    put(&wire, "tenure/default/members/not=a=key", b"?");
    assert_eq!(a.win("e", 1), 1);
    a.release("e", Some(1));
    let odd = Process::new(&wire, "odd", 2);
    let join = Join::new(odd.me.clone(), TTL);
    let error = ready(odd.store.join(&ns(), &join)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
}

/// Bytes that no program wrote on purpose: an error or a record, never a panic.
#[test]
fn no_bytes_make_reading_panic() {
    let mut dice = Dice::new(1);
    for round in 0..5_000 {
        let mut bytes = [ELECTION, MEMBER, NAME][round % 3].as_bytes().to_vec();
        for _ in 0..=dice.below(8) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
                1 => bytes.truncate(at.max(1)),
                2 => bytes[at] = b'9',
                _ => {
                    let from = dice.below(bytes.len());
                    bytes.swap(at, from);
                }
            }
        }
        if let Ok(mut record) = decode::<ElectionRecord>("x/nightly-report", &bytes) {
            let _ = (record.entries(), record.step_down(), record.term());
            record.vacate(ReleaseCause::Resigned, None, Timestamp::default());
            encode("e", &record).unwrap();
        }
        if let Ok(record) = decode::<NameRecord>("x/user=2F42", &bytes) {
            let _ = (record.row(), record.hangs_on());
            encode("n", &record).unwrap();
        }
        let _ = decode::<MemberRecord>("x/web-1", &bytes);
        let _ = decode::<CandidaciesRecord>("x/web-1", &bytes);
    }
}

/// H27: the history does not grow, and the largest record is within the bound.
#[test]
fn a_record_stays_small_however_many_terms_there_were() {
    let long = |c: &str| c.repeat(MAX_NAME);
    let who = member(&long("\""), u128::MAX);
    let profile =
        Profile::new(vec!["\"".repeat(MAX_ENDPOINT); MAX_ENDPOINTS], vec![0xff; MAX_METADATA]);
    let profile = profile.unwrap();
    let mut record = ElectionRecord::vacant(named(&long("\"")), TermNumber::NONE);
    for number in 1..=1_000 {
        let number = TermNumber::new(number);
        let nonce = Nonce::new(u64::MAX);
        let at = Timestamp::from_unix_millis(u64::MAX);
        let heir = Some((who.id.clone(), Duration::MAX));
        record.vacate(ReleaseCause::SteppedDown, heir, at);
        let member = &who;
        let priority = Priority::default();
        let profile = &profile;
        record.begin(&Win { number, member, nonce, ttl: TTL, priority, profile, at });
    }
    assert_eq!(record.history.len(), HISTORY);
    let size = encode("e", &record).unwrap().len();
    assert!(size < 64 * 1024, "{size}");
}
