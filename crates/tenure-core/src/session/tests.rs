use core::time::Duration;

use super::*;
use crate::TermNumber;

const TTL: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn leading() -> Session {
    let mut session = Session::new(at(0), TTL, 1_000);
    session.won();
    session
}

/// W1: a slow answer does not stretch trust, and no answer grants more than the ttl.
#[test]
fn trust_is_counted_from_before_the_request() {
    let mut trust = SessionTrust::new(TTL);
    trust.leads(at(1_000), TermNumber::new(3), ms(2_000));
    assert!(trust.is_current(at(2_999)) && !trust.is_current(at(3_000)));
    trust.leads(at(2_000), TermNumber::new(3), ms(60_000));
    assert!(trust.is_current(at(11_999)) && !trust.is_current(at(12_000)));
}

/// W2: a word that the term is over counts at once, and an older answer that arrives after
/// it gives nothing back.
#[test]
fn what_was_lost_stays_lost() {
    let mut trust = SessionTrust::new(TTL);
    trust.leads(at(1_000), TermNumber::new(3), ms(9_000));
    trust.lost(at(1_500));
    assert!(!trust.is_current(at(1_500)));
    trust.leads(at(1_400), TermNumber::new(3), ms(9_000));
    trust.leads(at(1_600), TermNumber::new(4), ms(9_000));
    assert!(!trust.is_current(at(1_600)), "a session has one term");
}

/// An answer that overtakes another is not undone by the one that it overtook.
#[test]
fn answers_are_ordered_by_when_they_were_asked_for() {
    let mut trust = SessionTrust::new(TTL);
    trust.leads(at(2_000), TermNumber::new(3), ms(5_000));
    trust.leads(at(1_000), TermNumber::new(3), ms(5_000));
    assert_eq!(trust.until(), at(7_000));
    // Before the first term, a word that nothing is led ends nothing.
    let mut waiting = SessionTrust::new(TTL);
    waiting.lost(at(500));
    waiting.leads(at(600), TermNumber::new(1), ms(1_000));
    assert!(waiting.is_current(at(700)));
}

/// W4: the release waits for the longest grant, widened for both clocks.
#[test]
fn a_silent_client_is_waited_for() {
    let mut session = leading();
    assert_eq!(session.release_from(), Mono::ZERO, "nothing was granted");
    assert!(session.heard(at(2_000)));
    assert_eq!(session.grant(at(4_000), at(12_000)), ms(8_000));
    assert_eq!(session.grant(at(4_500), at(12_000)), ms(7_500));
    assert!(session.release_from() >= at(12_016));
    assert!(!session.is_over(at(11_999)));
    assert_eq!(session.next(at(11_999)), Next::Wait(at(12_000)));
    assert!(session.is_over(at(12_000)));
    assert_eq!(session.next(at(12_000)), Next::Wait(session.release_from()));
    assert!(!session.heard(at(11_000)), "a late beat brings nothing back");
    assert_eq!(session.grant(at(12_000), at(20_000)), Duration::ZERO);
    assert_eq!(session.next(session.release_from()), Next::LetGo);
}

/// W4, E4: what is granted while stopping ends with the drain, and what was granted before that
/// is waited for.
#[test]
fn a_drain_grants_nothing_beyond_its_end() {
    let mut session = leading();
    session.asked_to_stop(at(2_000));
    assert_eq!(session.grant(at(1_900), at(9_000)), ms(100));
    session.end();
    assert_eq!(session.next(at(2_000)), Next::Wait(session.release_from()));
    assert!(session.release_from() < at(2_010), "{:?}", session.release_from());

    let mut longer = leading();
    assert_eq!(longer.grant(at(1_000), at(9_000)), ms(8_000));
    longer.asked_to_stop(at(1_200));
    assert_eq!(longer.grant(at(1_100), at(9_000)), ms(100));
    longer.end();
    assert!(matches!(longer.next(at(1_200)), Next::Wait(until) if until > at(9_000)));
}

/// W4: however the member lost the term, it is kept until the client trusts nothing, and no
/// longer than a member keeps it by itself.
#[test]
fn a_term_that_was_lost_is_kept_until_the_client_trusts_nothing() {
    let mut session = leading();
    assert_eq!(session.grant(at(1_000), at(11_000)), TTL);
    session.end();
    let Next::Wait(until) = session.next(at(1_001)) else { panic!("{session:?}") };
    assert_eq!(until, at(1_000) + Grants::waited(TTL, 1_000));
    assert!(until > at(11_020));
    // The client says that it has stopped: nothing keeps the term.
    session.stopped();
    assert_eq!(session.next(at(1_002)), Next::LetGo);
    session.end();
    assert_eq!(session.next(at(1_003)), Next::LetGo, "its word counts for good");
}

/// A session that was ended grants nothing, however young it is; nor does one that leads nothing.
#[test]
fn an_ended_session_grants_nothing() {
    let mut session = Session::new(at(0), TTL, 1_000);
    assert_eq!(session.grant(at(1), at(9_000)), Duration::ZERO, "it waits");
    session.won();
    session.end();
    session.won();
    session.asked_to_stop(at(5_000));
    assert!(!session.heard(at(1)));
    assert_eq!(session.grant(at(1), at(9_000)), Duration::ZERO);
}
