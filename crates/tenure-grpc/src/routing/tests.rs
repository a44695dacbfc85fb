//! Scripts of what is observed, looked at and hinted, each with the route that follows.

use tenure::testing::{Clock, ManualClock};
use tenure::views::{Candidate, Holder, Incarnation, MemberRef, Priority, StepDown};
use tenure::{ElectionName, MemberId, TermNumber, Timestamp};

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn profile(endpoint: &str) -> Profile {
    Profile::new([endpoint], b"").unwrap()
}

fn member(id: &str) -> MemberRef {
    MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(7))
}

/// What a store shows: who holds which term, with what is left.
fn view(number: u64, holder: Option<(&str, Duration)>) -> ElectionView {
    let holder = holder.map(|(id, remaining)| Holder {
        member: member(id),
        profile: profile(&format!("{id}:80")),
        elected_at: Timestamp::from_unix_millis(0),
        ttl: TTL,
        remaining,
        unconfirmed: false,
    });
    let vacant = ElectionView::vacant(ElectionName::new("e").unwrap());
    ElectionView { number: TermNumber::new(number), holder, ..vacant }
}

fn lives(id: &str, remaining: Duration) -> MemberView {
    MemberView {
        member: member(id),
        profile: profile(&format!("{id}:80")),
        ttl: TTL,
        remaining,
        joined_at: Timestamp::from_unix_millis(0),
        holds: 0,
    }
}

fn hint(number: u64, endpoint: &str) -> Hint {
    Hint { number, endpoint: endpoint.into() }
}

/// The route of the moment: the term and whom it names.
fn route(routing: &Routing, clock: &ManualClock) -> Option<(u64, String)> {
    routing.route(clock.now()).map(|leader| (leader.number, leader.id.clone()))
}

fn led(number: u64, id: &str) -> Option<(u64, String)> {
    Some((number, id.into()))
}

/// G1, G4: the route stands for what is left of the ttl, counted from before the question, and
/// not an instant longer, whatever the store does.
#[test]
fn a_route_ends_with_the_ttl_of_its_leader() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    let asked = clock.now();
    clock.advance(Duration::from_secs(2)); // the answer takes its time
    routing.looked(asked, &view(3, Some(("a", TTL))));
    assert_eq!(route(&routing, &clock), led(3, "a"));
    assert_eq!(routing.look_at(), Some(asked + TTL / 2));
    clock.advance(Duration::from_secs(8) - Duration::from_nanos(1));
    assert_eq!(route(&routing, &clock), led(3, "a"));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(route(&routing, &clock), None);
    // A renewal that is seen later brings the same term back.
    routing.looked(clock.now(), &view(3, Some(("a", TTL))));
    assert_eq!(route(&routing, &clock), led(3, "a"));
}

/// G1: an answer that was under way while a newer term began changes nothing.
#[test]
fn an_older_term_never_comes_back() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    let asked = clock.now();
    routing.leads(clock.now(), 5, "b", profile("b:80"));
    routing.looked(asked, &view(4, Some(("a", TTL))));
    routing.leads(clock.now(), 4, "a", profile("a:80"));
    routing.vacant(4);
    assert_eq!(route(&routing, &clock), led(5, "b"));
    assert_eq!(routing.seen(), 5);
}

/// A look that was sent before the end and answered after it does not revive the term.
#[test]
fn a_term_that_is_over_stays_over() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    routing.looked(clock.now(), &view(3, Some(("a", TTL))));
    routing.vacant(3);
    assert_eq!(route(&routing, &clock), None);
    routing.looked(clock.now(), &view(3, Some(("a", TTL))));
    routing.leads(clock.now(), 3, "a", profile("a:80"));
    assert_eq!(route(&routing, &clock), None);
    routing.looked(clock.now(), &view(4, Some(("a", TTL))));
    assert_eq!(route(&routing, &clock), led(4, "a"));
    routing.looked(clock.now(), &view(4, None));
    assert_eq!(route(&routing, &clock), None);
}

/// A term of which only the beginning is known has its member's own ttl, or half a second.
#[test]
fn a_new_term_is_believed_for_what_is_known_of_its_member() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    routing.leads(clock.now(), 1, "a", profile("a:80"));
    assert_eq!(routing.look_at(), Some(clock.now()), "a look at once");
    clock.advance(UNTOLD);
    assert_eq!(route(&routing, &clock), None);
    routing.members(clock.now(), &[lives("b", TTL)]);
    routing.leads(clock.now(), 2, "b", profile("b:80"));
    clock.advance(TTL - Duration::from_nanos(1));
    assert_eq!(route(&routing, &clock), led(2, "b"));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(route(&routing, &clock), None);
}

/// A hint is taken if it names a newer term and a live member's endpoint; otherwise it causes a
/// look and no more.
#[test]
fn only_a_newer_hint_at_a_live_member_is_taken() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    routing.looked(clock.now(), &view(3, Some(("a", TTL))));
    routing.members(clock.now(), &[lives("a", TTL), lives("b", TTL), lives("c", TTL / 2)]);
    clock.advance(TTL / 2);
    for (number, endpoint) in
        [(3, "b:80"), (2, "b:80"), (9, "evil:80"), (9, "c:80"), (9, "http://b:80")]
    {
        assert_eq!(routing.hint(clock.now(), &hint(number, endpoint)), Hinted::Look, "{endpoint}");
        assert_eq!(route(&routing, &clock), led(3, "a"), "{endpoint}");
    }
    assert_eq!(routing.hint(clock.now(), &hint(4, "b:80")), Hinted::Taken);
    assert_eq!(route(&routing, &clock), led(4, "b"));
    assert!(routing.is_hinted());
    assert_eq!(routing.seen(), 3, "a hint is not the store's word");
    // The one that it named refuses, too.
    routing.refused(3);
    assert_eq!(route(&routing, &clock), led(4, "b"));
    routing.refused(4);
    assert_eq!(route(&routing, &clock), led(3, "a"));
}

/// A forged number lives until the store has been asked, and then the true leader is called,
/// however small its number is beside the forged one.
#[test]
fn a_forged_number_is_forgotten_with_the_next_look() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    routing.members(clock.now(), &[lives("a", TTL), lives("b", TTL)]);
    routing.looked(clock.now(), &view(3, Some(("a", TTL))));
    let before = clock.now();
    clock.advance(Duration::from_millis(1));
    assert_eq!(routing.hint(clock.now(), &hint(u64::MAX, "b:80")), Hinted::Taken);
    assert_eq!(routing.hint(clock.now(), &hint(u64::MAX, "a:80")), Hinted::Look, "no loop");
    routing.looked(before, &view(3, Some(("a", TTL))));
    assert!(routing.is_hinted(), "that look was sent before the hint");
    routing.looked(clock.now(), &view(3, Some(("a", TTL))));
    assert_eq!(route(&routing, &clock), led(3, "a"));
    // A hint that the store has caught up with is of no use any more.
    assert_eq!(routing.hint(clock.now(), &hint(4, "b:80")), Hinted::Taken);
    routing.leads(clock.now(), 4, "c", profile("c:80"));
    assert_eq!(route(&routing, &clock), led(4, "c"));
}

/// The heir that was named comes first, then those who wait; the leader is not among them.
#[test]
fn those_that_may_lead_next_are_in_order() {
    let clock = ManualClock::new();
    let mut routing = Routing::default();
    let candidate = |id: &str| {
        let priority = Priority::default();
        Candidate { member: member(id), priority, waiting: TTL }
    };
    let step_down = StepDown {
        number: TermNumber::new(3),
        reason: tenure::views::Note::default(),
        by: tenure::views::Note::default(),
        to: Some(MemberId::new("c").unwrap()),
    };
    let mut seen = view(3, Some(("a", TTL)));
    seen.candidates = ["a", "b", "gone", "c"].map(candidate).into();
    routing.members(clock.now(), &["a", "b", "c"].map(|id| lives(id, TTL)));
    routing.looked(clock.now(), &seen);
    let next = |routing: &Routing| -> Vec<String> {
        routing.next().map(|profile| profile.endpoints()[0].clone()).collect()
    };
    assert_eq!(next(&routing), ["b:80", "c:80"]);
    seen.step_down = Some(step_down);
    routing.looked(clock.now(), &seen);
    assert_eq!(next(&routing)[0], "c:80");
}
