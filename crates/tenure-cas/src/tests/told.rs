//! What a register tells by itself: heard at once, never believed to be newer than it is,
//! and never needed for what is promised.

use super::*;
use crate::record::member::MemberRecord;
use tenure_store::{Followed, Following, Watch};

/// Looks a few times, without any time passing.
async fn at_once(following: &mut dyn Following) -> Option<Hint> {
    for _ in 0..100 {
        match following.next().now_or_never() {
            Some(next) => match next.unwrap() {
                Followed::Hint(hint) => return Some(hint),
                other => panic!("a bare hint: {other:?}"),
            },
            None => tokio::task::yield_now().await,
        }
    }
    None
}

async fn following(process: &Process) -> Box<dyn Following> {
    let mut following = process.store.follow(&ns()).await.unwrap();
    assert_eq!(at_once(&mut *following).await, Some(Hint::Anything));
    following
}

fn known(process: &Process, id: &str) -> Option<u64> {
    let key = format!("tenure/default/members/{id}");
    process.store.cells().known::<MemberRecord>(&key).map(|seen| seen.record.beat)
}

/// B2: a resignation is heard without any time passing, with the heir it is kept for.
#[tokio::test(start_paused = true)]
async fn a_resignation_is_heard_at_once() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    assert_eq!(a.store.capabilities().watch, Watch::Native);
    assert_eq!(a.win("e", 1), 1);
    b.lose("e", 1);
    let mut hints = following(&b).await;
    a.release("e", Some(1));
    let heir = Some(b.me.id.clone());
    assert_eq!(at_once(&mut *hints).await, Some(Hint::Vacant { election: named("e"), heir }));
    assert_eq!(b.win("e", 2), 2);
}

/// The bars of waiting: what is told is not looked at. A bid of a waiting member, and one for
/// what was given back, go by what was told.
#[tokio::test(start_paused = true)]
async fn what_is_told_is_not_looked_at() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    b.lose("e", 1);
    let mut hints = following(&b).await;
    a.beat();
    assert_eq!(at_once(&mut *hints).await, None, "a heartbeat is no news");
    let before = wire.looks();
    b.lose("e", 2);
    let own = 1; // The options of these tests never take the caller's own record as known.
    assert_eq!(wire.looks(), before + own, "a member that waits knows who leads");
    a.release("e", Some(1));
    assert!(matches!(at_once(&mut *hints).await, Some(Hint::Vacant { .. })));
    let before = wire.looks();
    assert_eq!(b.win("e", 3), 2);
    assert_eq!(wire.looks(), before + own + 1, "the floor of numbers alone");
}

/// H27: a candidate that is gone is no heir, though no process has looked for it.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_told_of_no_more_is_no_heir() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let c = Process::joined(&wire, "c", 3);
    a.win("e", 1);
    b.bid_with("e", 1, 200);
    c.lose("e", 1);
    let mut hints = following(&a).await;
    for _ in 0..3 {
        for process in [&a, &c] {
            process.clock.advance(TTL / 2);
            process.beat();
        }
        let _ = at_once(&mut *hints).await;
    }
    a.release("e", Some(1));
    let kept = c.view("e").reserved.map(|kept| kept.member);
    assert_eq!(kept, Some(c.me.id.clone()), "not for the one that is gone");
}

/// T1: an upper bound of when a beat began, as of an answer: what is told late is waited out
/// for longer, and a holder that was told of in time for no longer than its ttl.
#[tokio::test(start_paused = true)]
async fn a_beat_that_is_told_counts_from_when_it_arrived() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    b.lose("e", 1);
    let mut hints = following(&b).await;
    b.clock.advance(TTL / 2);
    a.clock.advance(TTL / 2);
    a.beat();
    let late = Duration::from_millis(700);
    b.clock.advance(late);
    assert_eq!(at_once(&mut *hints).await, None);
    let widened = TTL + TTL / 1000;
    // The anchor knows better than the arrival: by the writer's own clock and the drift.
    let left = b.lose("e", 2).holder.unwrap().remaining;
    assert!(left <= widened && left >= TTL - late, "{left:?}");
    b.beat();
    b.clock.advance(left);
    assert_eq!(at_once(&mut *hints).await, None);
    assert_eq!(b.win("e", 3), 2);
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
}

/// A change is no look: silence of the watch alone ends no member.
#[tokio::test(start_paused = true)]
async fn a_watch_that_died_in_silence_ends_no_live_leader() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    b.lose("e", 1);
    let mut hints = following(&b).await;
    wire.tells(Way::Dead);
    for _ in 0..5 {
        a.clock.advance(TTL / 2);
        b.clock.advance(TTL / 2);
        a.beat();
        b.beat();
        let _ = at_once(&mut *hints).await;
        assert_eq!(b.lose("e", 2).number.get(), 1);
        assert!(a.keeps("e", 1));
    }
}

/// A heartbeat of our own that is not told begins the watch anew, and one hint stands for all
/// that happened meanwhile.
#[tokio::test(start_paused = true)]
async fn a_watch_that_died_in_silence_is_begun_anew() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    b.lose("e", 1);
    let mut hints = following(&b).await;
    wire.tells(Way::Dead);
    a.release("e", Some(1));
    b.clock.advance(TTL / 2);
    b.beat();
    let silent = tokio::time::timeout(Duration::from_millis(500), hints.next()).await;
    assert!(silent.is_err(), "{silent:?}");
    b.clock.advance(TTL / 2);
    wire.tells(Way::Well);
    let next = tokio::time::timeout(Duration::from_secs(20), hints.next()).await;
    assert_eq!(next.unwrap().unwrap(), Followed::Hint(Hint::Anything));
    assert_eq!(b.win("e", 2), 2);
}

/// N3: changes that arrive late, twice and in another order never go back.
#[tokio::test(start_paused = true)]
async fn what_is_told_in_another_order_never_goes_back() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    wire.tells(Way::Reordered);
    let mut hints = following(&b).await;
    let mut newest = 0;
    for round in 1..=6 {
        assert_eq!(a.win("e", round), round);
        a.beat();
        a.release("e", Some(round));
        a.beat();
        while let Some(_hint) = at_once(&mut *hints).await {
            let beat = known(&b, "a").unwrap();
            assert!(beat >= newest, "beat {newest} was known, and now {beat}");
            newest = beat;
        }
        let beat = known(&b, "a").unwrap();
        assert!(beat >= newest, "beat {newest} was known, and now {beat}");
        assert_eq!(b.view("e").number.get(), round);
    }
}

/// N3: where looks may lag, what was seen does not go back, and no live leader is ended.
#[test]
fn a_load_from_a_copy_that_lags_is_passed_over() {
    let wire = Wire::default();
    let a = Process::wary(&wire, "a", 1);
    let b = Process::wary(&wire, "b", 2);
    a.win("e", 1);
    a.clock.advance(TTL / 2);
    b.clock.advance(TTL / 2);
    a.beat();
    let before = b.lose("e", 1);
    let newest = known(&b, "a").unwrap();
    wire.let_loads_lag();
    let copy = wire.stale_loads.lock().unwrap().take();
    a.beat();
    assert_eq!(b.view("e").number, before.number);
    assert_eq!(known(&b, "a"), Some(newest + 1));
    // The copy is of before that heartbeat.
    *wire.stale_loads.lock().unwrap() = copy;
    assert_eq!(b.view("e").number, before.number);
    assert_eq!(known(&b, "a"), Some(newest + 1), "it went back");
    wire.loads_are_up_to_date();
    assert!(a.keeps("e", 1));
}

/// The rule is what keeps it from going back: broken, a lagging copy is taken for the newest.
#[cfg(feature = "__lab")]
#[test]
fn without_the_rule_a_copy_that_lags_goes_back() {
    let wire = Wire::default();
    let a = Process::wary(&wire, "a", 1);
    let b = Process::wary(&wire, "b", 2);
    b.store.mutate(CasRule::GoesBack);
    a.win("e", 1);
    b.lose("e", 1);
    wire.let_loads_lag();
    let copy = wire.stale_loads.lock().unwrap().take();
    a.beat();
    b.view("e");
    let newest = known(&b, "a").unwrap();
    *wire.stale_loads.lock().unwrap() = copy;
    b.view("e");
    assert_eq!(known(&b, "a"), Some(newest - 1), "the broken rule is noticed");
}

/// A record that was put back by hand has a lower count. Where looks may lag it is believed as
/// soon as a swap of what is known has conflicted with it; elsewhere by a look.
#[test]
fn a_record_that_was_put_back_is_believed_after_a_conflict() {
    let wire = Wire::default();
    let a = Process::wary(&wire, "a", 1);
    let key = "tenure/default/elections/e";
    a.win("e", 1);
    let Loaded::Found { bytes, .. } = ready(wire.load(key, None)).unwrap() else { panic!("none") };
    a.release("e", Some(1));
    assert_eq!(a.win("e", 2), 2);
    let Loaded::Found { version, .. } = ready(wire.load(key, None)).unwrap() else {
        panic!("none")
    };
    ready(wire.inner.swap(key, Expect::Version(version), bytes)).unwrap();
    let other = Process::joined(&wire, "b", 2);
    assert_eq!(other.view("e").number.get(), 1, "a look that cannot lag is the truth");
    assert_eq!(a.view("e").number.get(), 2, "what was seen does not go back");
    assert_eq!(a.win("e", 3), 3, "and its numbers go on");
}

/// M2: a batch that meets a challenger's end of the member wins nothing.
#[test]
fn a_batch_of_a_life_that_was_ended_wins_nothing() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("other", 9);
    b.lose("other", 9);
    b.clock.advance(WIDE / 2);
    b.beat();
    b.clock.advance(WIDE / 2);
    // What A knows of itself is out of date by now.
    assert_eq!(b.win("other", 10), 2);
    assert_eq!(a.try_bid("e", 1, 100).unwrap(), Claims::Ended { superseded: false });
    assert_eq!(b.win("e", 1), 1, "nothing was written");
}

/// A claim that wins is one write, with the heartbeat and the cell for fences in it.
#[test]
fn a_win_is_one_write() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let before = wire.inner.writes();
    a.win("e", 1);
    assert_eq!(wire.inner.writes(), before + 3, "three cells, in one step");
    let cell = ready(wire.load("tenure/default/terms/e", None)).unwrap();
    assert!(matches!(cell, Loaded::Found { bytes, .. } if bytes == b"1"));
    a.release("e", Some(1));
    a.win("e", 2);
    let cell = ready(wire.load("tenure/default/terms/e", None)).unwrap();
    assert!(matches!(cell, Loaded::Found { bytes, .. } if bytes == b"2"));
}

/// Claiming very many: two requests for each batch, and no number comes back where there were
/// records after all.
#[test]
fn many_elections_are_claimed_in_two_requests_a_batch() {
    let wire = Wire::rich();
    let a = Process::joined(&wire, "a", 1);
    let claim = |of: &Process, nonce: u64| {
        let bid = |n: u64| Bid::new(named(&format!("e{n}")), Nonce::new(nonce * 1_000 + n));
        let claim = Claim::new(of.me.clone(), TTL, (0..50).map(bid).collect::<Vec<_>>());
        match ready(of.store.claim(&ns(), &claim)).unwrap() {
            Claims::Answered(answers) => answers,
            Claims::Ended { superseded } => panic!("ended, superseded: {superseded}"),
        }
    };
    let before = wire.looks();
    let won = claim(&a, 1);
    assert!(won.iter().all(|one| matches!(one, Claimed::Won(term) if term.number.get() == 1)));
    let own = 1;
    assert_eq!(wire.looks(), before + own + 1, "the floor of numbers alone");
    let b = Process::joined(&wire, "b", 2);
    let lost = claim(&b, 1);
    assert!(lost.iter().all(|one| matches!(one, Claimed::Held(view) if view.number.get() == 1)));
    ready(a.store.leave(&ns(), &a.me)).unwrap();
    let c = Process::joined(&wire, "c", 3);
    let won = claim(&c, 1);
    assert!(won.iter().all(|one| matches!(one, Claimed::Won(term) if term.number.get() == 2)));
}
