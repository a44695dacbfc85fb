//! The operator's verbs.

use super::*;

fn pair() -> (Wire, Process, Process) {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    (wire, a, b)
}

/// E5: meant for one term, told with the renewal, gone with the term.
#[test]
fn a_step_down_request_reaches_its_term_and_no_other() {
    let (_wire, a, b) = pair();
    assert_eq!(b.amend(step_down("e", "drain")), Amended::Vacant);
    a.win("e", 1);
    let Beat::Alive { attention, .. } = a.beat() else { panic!("ended") };
    let done = b.amend(step_down("e", "drain"));
    let member = Some(a.me.clone());
    let number = Some(TermNumber::new(1));
    assert_eq!(done, Amended::Done { number, member, remaining: WIDE });
    assert_eq!(b.amend(step_down("e", "drain")), Amended::Unchanged);
    let Beat::Alive { attention: raised, .. } = a.beat() else { panic!("ended") };
    assert!(raised > attention);
    assert_eq!(a.view("e").step_down.unwrap().reason.as_str(), "drain");
    a.release("e", Some(1));
    assert_eq!(a.win("e", 2), 2);
    assert!(a.keeps("e", 2));
    assert_eq!(a.view("e").step_down, None, "it was meant for the first");
    let late = Amend::StepDown {
        election: named("e"),
        number,
        to: None,
        reason: Note::default(),
        by: Note::default(),
    };
    assert_eq!(b.amend(late), Amended::Superseded { number: TermNumber::new(2) });
}

/// C10: the successor must be there to succeed.
#[test]
fn a_hand_over_names_a_live_candidate_that_may_lead() {
    let (_wire, a, b) = pair();
    a.win("e", 1);
    let to = |id: &str| Amend::StepDown {
        election: named("e"),
        number: None,
        to: Some(MemberId::new(id).unwrap()),
        reason: Note::default(),
        by: Note::default(),
    };
    for no_candidate in ["stranger", "a", "b"] {
        assert_eq!(b.amend(to(no_candidate)), Amended::NoSuchCandidate, "{no_candidate}");
    }
    b.bid_with("e", 1, 0);
    assert_eq!(b.amend(to("b")), Amended::NoSuchCandidate, "it never leads");
    b.bid_with("e", 1, 1);
    assert!(matches!(b.amend(to("b")), Amended::Done { .. }));
}

/// E6.
#[test]
fn a_pause_keeps_the_incumbent_and_elects_no_other_until_it_is_lifted() {
    let (_wire, a, b) = pair();
    a.win("e", 1);
    assert!(matches!(b.amend(pause("e")), Amended::Done { .. }));
    assert_eq!(b.amend(pause("e")), Amended::Unchanged);
    assert!(a.keeps("e", 1));
    a.release("e", Some(1));
    assert_eq!(b.lose("e", 1).paused.unwrap().reason.as_str(), "deploy");
    assert!(matches!(b.amend(resume("e")), Amended::Done { .. }));
    assert_eq!(b.amend(resume("e")), Amended::Unchanged);
    assert_eq!(b.win("e", 1), 2);
}

/// E6: a candidate that saw the pause finds the resumption, though the holder's record
/// says nothing of it: the operator took the holder for dead.
#[test]
fn a_candidate_that_saw_a_pause_finds_the_resumption() {
    let (wire, a, b) = pair();
    let operator = Process::new(&wire, "c", 3);
    a.win("e", 1);
    operator.amend(pause("e"));
    operator.clock.advance(WIDE * 2);
    for _ in 0..3 {
        assert!(b.lose("e", 1).paused.is_some());
    }
    assert!(matches!(operator.amend(resume("e")), Amended::Done { .. }));
    assert!(a.keeps("e", 1));
    assert!(b.lose("e", 1).paused.is_none());
}

/// E6: also where no member ever stood.
#[test]
fn an_election_can_be_paused_before_its_first_term() {
    let (_wire, a, _b) = pair();
    a.amend(pause("e"));
    assert!(a.lose("e", 1).paused.is_some());
    a.amend(resume("e"));
    assert_eq!(a.win("e", 1), 1);
}

#[test]
fn an_eviction_is_felt_at_once_and_frees_after_the_ttl() {
    let (_wire, a, b) = pair();
    assert_eq!(b.amend(evict("stranger", false)), Amended::NoSuchMember);
    a.win("e", 1);
    assert!(b.lose("e", 1).is_held_by(a.me.incarnation));
    assert!(matches!(b.amend(evict("a", false)), Amended::Done { .. }));
    assert_eq!(b.amend(evict("a", false)), Amended::Unchanged);
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
    assert_eq!(a.try_bid("f", 1, 100).unwrap(), Claims::Ended { superseded: false });
    assert!(matches!(a.join(true), Joined::Taken { by, .. } if by == a.me.incarnation));
    assert!(b.view("e").is_held_by(a.me.incarnation), "it may believe so until then");
    b.clock.advance(WIDE / 2);
    b.beat();
    b.clock.advance(WIDE / 2);
    b.beat();
    assert_eq!(b.win("e", 1), 2);
    let query = Query { history: 10, ..Query::elections([named("e")]) };
    let history = ready(b.store.read(&ns(), &query)).unwrap().history;
    let causes: Vec<_> = history
        .iter()
        .filter_map(|entry| match &entry.what {
            Happening::Released { cause, .. } => Some(*cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [ReleaseCause::Ended(EndCause::Evicted)]);
}

#[test]
fn an_eviction_now_frees_now() {
    let (_wire, a, b) = pair();
    a.win("e", 1);
    a.win("f", 1);
    assert!(matches!(b.amend(evict("a", true)), Amended::Done { .. }));
    assert_eq!((b.win("e", 1), b.win("f", 1)), (2, 2));
    assert_eq!(b.members().len(), 1);
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
}

/// C21: looking never writes, and elections that are only stood for are shown.
#[test]
fn a_look_at_everything_writes_nothing() {
    let (wire, a, b) = pair();
    a.win("e", 1);
    b.bid_with("stood", 1, 0);
    let writes = wire.inner.writes();
    let snapshot = ready(b.store.read(&ns(), &Query::everything())).unwrap();
    let names: Vec<_> = snapshot.elections.iter().map(|e| e.election.as_str()).collect();
    assert_eq!(names, ["e", "stood"]);
    let held = Query { which: Which::HeldBy(a.me.incarnation), ..Query::nothing() };
    let held = ready(b.store.read(&ns(), &held)).unwrap().elections;
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].holder.as_ref().unwrap().profile.metadata(), b"zone=a");
    assert_eq!(wire.inner.writes(), writes);
}
