//! Holders of many elections that were killed: a sample of what they led was taken
//! over, the election that is fought for was led meanwhile, and terms rose.

use std::collections::HashMap;

use super::{Death, TrustSpan, Violation};
use crate::clock::{self, Nanos};
use crate::record::Line;
use crate::succession::TAKING;

/// How long the election may be vacant after such a death. Other faults go on, and each can
/// cost some ttls; what a store needs that ends a life term by term has no end.
const UNLED: Nanos = 15_000_000_000;
/// At least so long after such a death it is looked at who leads.
const AFTERMATH: Nanos = 10_000_000_000;

/// Every death, and what the holders and their heirs wrote down, in order.
pub(super) fn check(
    deaths: &[Death],
    holders: &[Vec<Line>],
    spans: &[TrustSpan],
) -> Vec<Violation> {
    let mut found = rising(holders);
    for death in deaths {
        if death.taken.is_none() {
            found.push(Violation::NotTakenOver { held: death.held, within: TAKING });
        }
        let unled = unled(death, spans);
        if unled > UNLED {
            found.push(Violation::Unled { after: death.killed, lasting: unled });
        }
    }
    found
}

/// The longest time without a leader from a holder's death until its elections were
/// taken over, and a while longer if the run has gone on.
pub(super) fn unled(death: &Death, spans: &[TrustSpan]) -> Nanos {
    let taken = death.taken.unwrap_or(death.killed + clock::nanos(TAKING));
    let last = spans.iter().map(|span| span.to).max().unwrap_or(0);
    let end = taken.max(last.min(death.killed + AFTERMATH));
    let mut led = death.killed;
    let mut longest = 0;
    // In the order in which they began.
    for span in spans.iter().filter(|r| r.to > death.killed && r.from < end) {
        longest = longest.max(span.from.saturating_sub(led));
        led = led.max(span.to);
    }
    longest.max(end.saturating_sub(led))
}

/// Each process began after the one before it was killed: every number that it won
/// is higher than all before it, also where the store has forgotten them (M6).
fn rising(holders: &[Vec<Line>]) -> Vec<Violation> {
    let mut highest: HashMap<u32, u64> = HashMap::new();
    let mut found = Vec::new();
    for line in holders.iter().flatten() {
        let Line::Won { election, term } = *line else { continue };
        let highest = highest.entry(election).or_default();
        if *highest >= term {
            found.push(Violation::HeldNotRising { election, before: *highest, term });
        }
        *highest = term.max(*highest);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Worker;
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn span(from: Nanos, to: Nanos) -> TrustSpan {
        let worker = Worker { slot: 0, life: 1 };
        TrustSpan { worker, term: 1, from: from * SECOND, to: to * SECOND }
    }

    fn death(taken: Option<Nanos>) -> Death {
        Death { killed: 100 * SECOND, held: 20_000, taken: taken.map(|t| t * SECOND) }
    }

    fn found(deaths: &[Death], spans: &[TrustSpan]) -> Vec<String> {
        check(deaths, &[], spans).iter().map(Violation::to_string).collect()
    }

    #[test]
    fn a_death_that_disturbs_no_other_is_fine() {
        let spans = [span(1, 10), span(90, 103), span(104, 107), span(109, 120)];
        assert_eq!(found(&[death(Some(106))], &spans), [""; 0]);
        assert_eq!(unled(&death(Some(106)), &spans), 2 * SECOND);
        // The end of the run is no vacancy.
        assert_eq!(unled(&death(Some(106)), &spans[..3]), SECOND);
    }

    /// P2, as it was: what the dead one held is never led again.
    #[test]
    fn elections_that_are_not_taken_over_are_found() {
        let found = found(&[death(None)], &[span(90, 140)]);
        assert!(found.len() == 1 && found[0].starts_with("not taken over"), "{found:?}");
    }

    /// P2, as it was: no member is elected at all while the dead one is being ended.
    #[test]
    fn an_election_that_stands_still_beside_it_is_found() {
        for spans in [vec![], vec![span(90, 101)], vec![span(90, 101), span(119, 121)]] {
            let found = found(&[death(Some(120))], &spans);
            assert!(found.len() == 1 && found[0].contains("had no leader"), "{found:?}");
        }
    }

    /// Promise 1 and M6, for what is held by many at once.
    #[test]
    fn numbers_that_come_back_are_found() {
        let won = |term| vec![Line::Won { election: 3, term }, Line::Won { election: 4, term: 9 }];
        assert_eq!(check(&[], &[won(1)[..1].to_vec(), won(2)], &[]), []);
        for term in [4, 5] {
            let found = check(&[], &[won(5)[..1].to_vec(), won(term)], &[]);
            assert_eq!(found, [Violation::HeldNotRising { election: 3, before: 5, term }]);
        }
    }
}
