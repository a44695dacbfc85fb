//! One member, ten thousand elections (C12).

use alloc::format;

use super::script::*;
use crate::*;

const MANY: usize = 10_000;
const BATCH: StoreTraits = StoreTraits { batch: 1_000, ..WATCHED };

/// A member that stands for ten thousand elections and has joined.
fn standing() -> Script {
    let mut script = Script::new(BATCH);
    for number in 0..MANY {
        script.stand(&format!("election-{number}"));
    }
    script
}

/// Counts of what was asked.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    beats: usize,
    claims: usize,
    releases: usize,
    reads: usize,
}

/// A store that gives everything asked for, and counts.
fn generous(counts: &mut Counts) -> impl FnMut(Mono, &Request) -> Answer {
    |_, request| {
        let reply = match request {
            Request::Join(_) => joined(),
            Request::Heartbeat(beat) => {
                counts.beats += 1;
                assert!(beat.held.is_empty(), "one heartbeat, whatever is held");
                alive(u32::try_from(MANY).unwrap())
            }
            Request::Claim(claim) => {
                counts.claims += 1;
                assert!(claim.bids.len() <= BATCH.batch);
                all_won(claim, 1)
            }
            Request::Release(release) => {
                counts.releases += 1;
                assert!(release.items.len() <= BATCH.batch);
                Reply::Release
            }
            Request::Leave(_) => Reply::Leave,
            Request::Bind(_) => unreachable!("no test here asks for names"),
            Request::Read(_) => {
                counts.reads += 1;
                Reply::Read(Snapshot::default())
            }
        };
        Some(Ok(reply))
    }
}

fn leading() -> Script {
    let mut script = standing();
    let mut counts = Counts::default();
    script.play(1_000, generous(&mut counts));
    assert_eq!(counts, Counts { claims: MANY / BATCH.batch, ..Counts::default() });
    assert_eq!(script.elected().len(), MANY);
    script.events.clear();
    script
}

/// C12: also by a member that has joined long before, whose first bid would go
/// out at once.
#[test]
fn elections_stood_for_together_are_bid_for_together() {
    let mut script = Script::new(BATCH);
    script.feed(Input::Join);
    let mut counts = Counts::default();
    script.play(1_000, generous(&mut counts));
    let name = |number| ElectionName::new(format!("election-{number}")).unwrap();
    let elections = (0..MANY).map(name).collect();
    let priority = Priority::default();
    script.feed(Input::StandForAll { elections, priority });
    script.play(2_000, generous(&mut counts));
    assert_eq!(counts.claims, MANY / BATCH.batch);
    assert_eq!(script.elected().len(), MANY);
}

/// C12: claimed in as few requests as the batch allows; after that, one heartbeat
/// an interval is all that is asked of the store.
#[test]
fn ten_thousand_elections_cost_the_store_what_one_does() {
    let mut script = leading();
    let mut counts = Counts::default();
    script.play(1_000 + 10 * 2_500, generous(&mut counts));
    assert_eq!(counts, Counts { beats: 10, ..Counts::default() });
    assert_eq!(script.lost(), []);
    assert_eq!(script.events.len(), 10, "one word of trust for all of them");
}

/// C12, T3: at the end of trust all of them are lost at once; after the margin
/// they go back in as few requests as the batch allows.
#[test]
fn all_are_lost_together_and_go_back_in_batches() {
    let mut script = leading();
    script.run_to(9_989);
    assert_eq!(script.lost(), []);
    script.jump_to(9_990);
    script.feed(Input::Wake);
    assert_eq!(script.lost().len(), MANY);
    let mut counts = Counts::default();
    script.sent.clear();
    script.play(11_100, generous(&mut counts));
    assert_eq!(counts.releases, MANY / BATCH.batch);
    assert_eq!(counts.reads, 0);
}

/// N1: a storm of hints that concern everything costs a bounded number of looks,
/// not a walk over ten thousand candidacies each.
#[test]
fn a_storm_over_ten_thousand_candidacies_is_cheap() {
    let mut script = standing();
    let other = held_by("any", member("other", 1), 1, 60_000);
    let held = |request: &Request| match request {
        Request::Join(_) => Some(Ok(joined())),
        Request::Claim(claim) => Some(Ok(all_held(claim, &other))),
        _ => None,
    };
    script.play(1_000, |_, request| held(request));
    script.events.clear();
    let mut reads = 0;
    for hint in 0..10_000u64 {
        script.feed(Input::Hint(Hint::Anything));
        script.play(1_000 + hint / 10, |_, request| match request {
            Request::Read(query) => {
                reads += 1;
                assert!(reads <= 21, "{reads} looks within a second");
                let names = match &query.which {
                    Which::Named(names) => names.len(),
                    _ => 0,
                };
                assert!(names <= BATCH.batch);
                Some(Ok(Reply::Read(Snapshot::default())))
            }
            _ => None,
        });
    }
    assert!(reads > 10);
}
