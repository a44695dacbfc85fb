//! What is news and what is not, without a store.

use std::time::Duration;

use tenure_core::{
    ElectionName, ElectionView, EndCause, Holder, MemberId, MemberRef, ReleaseCause, Timestamp,
};
use tenure_testkit::happenings;

use super::*;

const NOW: Mono = Mono::from_millis(1_000_000);

fn name() -> ElectionName {
    ElectionName::new("e").unwrap()
}

fn member() -> MemberRef {
    MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1))
}

fn view(number: u64, held: bool) -> ElectionView {
    let holder = held.then(|| Holder {
        member: member(),
        profile: Profile::default(),
        elected_at: Timestamp::default(),
        ttl: Duration::from_secs(10),
        remaining: Duration::from_secs(7),
        unconfirmed: false,
    });
    ElectionView { number: TermNumber::new(number), holder, ..ElectionView::vacant(name()) }
}

fn entry(seq: u64, what: Happening) -> Entry {
    Entry { seq: Seq::new(seq), at: Timestamp::default(), what }
}

fn elected(seq: u64, number: u64) -> Entry {
    let number = TermNumber::new(number);
    let election = name();
    let elected_at = Timestamp::default();
    let term = Term { election, number, member: member(), elected_at };
    entry(seq, happenings::elected(term))
}

fn released(seq: u64, number: u64) -> Entry {
    let number = TermNumber::new(number);
    entry(seq, happenings::released(name(), number, member(), ReleaseCause::Resigned))
}

/// Everything posted so far, in short: `+1` leads, `-1` vacant.
fn told(news: &mut broadcast::Receiver<Arc<Observation>>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(news) = news.try_recv() {
        told.push(match &news.observed {
            Observed::Leads { term, .. } => format!("+{}", term.number),
            Observed::Vacant { number } => format!("-{number}"),
            other => format!("{other:?}").chars().take(7).collect(),
        });
    }
    told
}

/// N3: older views and entries change nothing.
#[test]
fn nothing_older_is_news() {
    let track = Track::new(false);
    let (_, mut news) = track.subscribe();
    track.on_entry(&elected(4, 4), Profile::default());
    track.on_view(NOW, Seq::new(5), &view(3, true));
    track.on_view(NOW, Seq::new(4), &view(2, true));
    track.on_entry(&released(5, 3), Profile::default());
    track.on_entry(&released(6, 2), Profile::default());
    assert_eq!(told(&mut news), ["+3"]);
    track.on_entry(&released(7, 3), Profile::default());
    track.on_entry(&released(8, 3), Profile::default());
    assert_eq!(told(&mut news), ["-3"]);
}

/// A look does not run ahead of the journal: what lies between is told.
#[test]
fn a_look_ahead_of_the_journal_skips_nothing() {
    let track = Track::new(false);
    let (_, mut news) = track.subscribe();
    track.on_view(NOW, Seq::new(1), &view(0, false));
    track.on_view(NOW, Seq::new(9), &view(2, true));
    assert_eq!(track.check_at(), None, "the entries say when to look again");
    for entry in [elected(5, 1), released(6, 1), elected(9, 2)] {
        track.on_entry(&entry, Profile::default());
    }
    assert_eq!(told(&mut news), ["-0", "+1", "-1", "+2"]);
}

/// B6: the leader of the newest term is gone, and no entry says so.
#[test]
fn a_ttl_that_ran_out_is_a_vacancy() {
    let track = Track::new(false);
    let (_, mut news) = track.subscribe();
    track.on_view(NOW, Seq::new(3), &view(1, true));
    assert_eq!(track.check_at(), Some(NOW + Duration::from_secs(7)));
    track.on_view(NOW, Seq::new(8), &view(1, true));
    track.on_view(NOW, Seq::new(9), &view(1, false));
    assert_eq!(track.check_at(), None);
    track.on_entry(&released(10, 1), Profile::default());
    assert_eq!(told(&mut news), ["+1", "-1"]);
}

/// M5, P2: the end of the leader's life is the end of its term, whether or not that
/// is written down for the term; when it is, that is no news.
#[test]
fn the_end_of_a_leader_is_a_vacancy() {
    let other = MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(2));
    let ended = |seq, member| entry(seq, happenings::ended(member, EndCause::Expired));
    let track = Track::new(false);
    let (_, mut news) = track.subscribe();
    track.on_view(NOW, Seq::new(3), &view(1, true));
    track.on_entry(&ended(4, other), Profile::default());
    assert_eq!(told(&mut news), ["+1"]);
    track.on_entry(&ended(5, member()), Profile::default());
    assert_eq!(track.check_at(), None);
    assert_eq!(told(&mut news), ["-1"]);
    track.on_entry(&released(6, 1), Profile::default());
    track.on_entry(&elected(7, 2), Profile::default());
    assert_eq!(told(&mut news), ["+2"]);
}

/// Without a journal, positions are zero and the looks say everything.
#[test]
fn without_a_journal_looks_say_everything() {
    let track = Track::new(false);
    let (_, mut news) = track.subscribe();
    for (number, held) in [(0, false), (1, true), (1, true), (1, false), (3, true), (2, true)] {
        track.on_view(NOW, Seq::START, &view(number, held));
    }
    assert_eq!(told(&mut news), ["-0", "+1", "-1", "+3"]);
}

/// An observer that resumes is told what became of a leader it knew, then how things
/// stand.
#[test]
fn one_who_resumes_hears_what_it_missed() {
    let track = Track::resumed(Seq::new(10), false);
    let (ready, mut news) = track.subscribe();
    assert!(ready.is_empty(), "what it knows it is not told again");
    track.on_entry(&elected(10, 5), Profile::default());
    track.on_entry(&released(11, 5), Profile::default());
    track.on_entry(&entry(12, happenings::resumed(name())), Profile::default());
    track.caught_up(NOW, Seq::new(14), &view(5, false));
    assert_eq!(told(&mut news), ["-5", "Resumed"]);

    let track = Track::resumed(Seq::new(10), false);
    let (_, mut news) = track.subscribe();
    track.caught_up(NOW, Seq::new(10), &view(5, true));
    assert_eq!(told(&mut news), ["+5"], "nothing was missed: the present state");
}

/// What is no longer in the journal is said to be skipped, then the present.
#[test]
fn a_trimmed_journal_is_said_to_be_skipped() {
    let track = Track::new(false);
    let (_, mut news) = track.subscribe();
    track.on_view(NOW, Seq::new(3), &view(1, true));
    track.on_trimmed(Seq::new(2));
    assert_eq!(told(&mut news), ["+1"], "all of that was known");
    track.on_trimmed(Seq::new(20));
    track.on_entry(&elected(21, 7), Profile::default());
    track.on_view(NOW, Seq::new(22), &view(7, true));
    assert_eq!(told(&mut news), ["Skipped", "+7"]);
    track.start_over();
    track.on_view(NOW, Seq::new(4), &view(7, true));
    assert_eq!(told(&mut news), ["Skipped", "+7"]);
}

fn held_for(number: u64, remaining: u64) -> ElectionView {
    let mut view = view(number, true);
    view.holder.iter_mut().for_each(|h| h.remaining = Duration::from_secs(remaining));
    view
}

/// L23: a renewal is told once, by how far the end has moved, and only to those who asked;
/// so is the end of the ttl, before the vacancy.
#[test]
fn renewals_and_expiry_are_told_to_those_who_asked() {
    for asked in [true, false] {
        let track = Track::new(asked);
        let (_, mut news) = track.subscribe();
        let at = |secs: u64| NOW + Duration::from_secs(secs);
        track.on_view(at(0), Seq::START, &held_for(1, 10));
        assert_eq!(told(&mut news), ["+1"]);
        let every = if asked { 2_500 } else { 10_000 };
        assert_eq!(track.check_at(), Some(NOW + Duration::from_millis(every)));
        // Late by a second, which no heartbeat did.
        track.on_view(at(3), Seq::START, &held_for(1, 8));
        assert!(told(&mut news).is_empty());
        track.on_view(at(5), Seq::START, &held_for(1, 9));
        track.on_view(at(6), Seq::START, &held_for(1, 8));
        let renewed: &[&str] = if asked { &["Renewed"] } else { &[] };
        assert_eq!(told(&mut news), renewed);
        track.on_view(at(14), Seq::START, &view(1, false));
        let over: &[&str] = if asked { &["Expired", "-1"] } else { &["-1"] };
        assert_eq!(told(&mut news), over);
    }
}

/// A term that was given back did not expire.
#[test]
fn a_release_is_no_expiry() {
    let track = Track::new(true);
    let (_, mut news) = track.subscribe();
    track.on_view(NOW, Seq::new(1), &held_for(1, 10));
    track.on_entry(&released(2, 1), Profile::default());
    assert_eq!(told(&mut news), ["+1", "-1"]);
    track.on_view(NOW, Seq::new(2), &view(1, false));
    assert!(told(&mut news).is_empty());
}

/// The journal says why a member was ended: with its ttl, or by an operator.
#[test]
fn a_member_that_was_evicted_did_not_expire() {
    for (cause, said) in [(EndCause::Expired, "Expired"), (EndCause::Evicted, "-1")] {
        let track = Track::new(true);
        let (_, mut news) = track.subscribe();
        track.on_view(NOW, Seq::new(1), &held_for(1, 10));
        let ended = Happening::Ended { member: member(), cause };
        track.on_entry(&entry(2, ended), Profile::default());
        assert_eq!(told(&mut news).get(1).map(String::as_str), Some(said));
    }
}
