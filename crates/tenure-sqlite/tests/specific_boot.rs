//! Rows of another boot, and what lies beside the file.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use tenure_core::{Amend, Amended, Beat, Happening, HeldUp, Joined, Note, Query, TermNumber};
use tenure_sqlite::{BootKey, SqliteOptions};
use tenure_store::{ManualClock, Store};

fn boot(key: &str, clock: &Arc<ManualClock>) -> SqliteOptions {
    SqliteOptions::new().boot_key(BootKey::named(key)).clock(clock.clone())
}

/// A reboot frees everything, once the holder's ttl, widened by drift, has
/// passed on the bidder's clock.
#[tokio::test]
async fn after_a_reboot_a_term_is_free_one_widened_ttl_later_and_not_before() {
    let place = Place::new();
    let a = member("a", 1);
    let b = member("b", 2);
    let clock = Arc::new(ManualClock::new());
    let before = place.open_with(boot("first", &clock)).await;
    joins(&before, &a).await;
    won(before.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    drop(before);

    // The clock starts anew, far behind the instants in the file.
    let clock = Arc::new(ManualClock::new());
    let after = place.open_with(boot("second", &clock)).await;
    joins(&after, &b).await;
    let view = held(after.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let wide = TTL + TTL / 1_000;
    assert_eq!(view.holder.unwrap().remaining, wide, "what is left on the observer's clock");

    clock.advance(TTL / 2);
    after.heartbeat(&ns(), &beat(&b)).await.unwrap();
    clock.advance(wide - TTL / 2 - Duration::from_millis(1));
    held(after.claim(&ns(), &claim(&b, "e", 2)).await.unwrap());
    clock.advance(Duration::from_millis(1));
    let term = won(after.claim(&ns(), &claim(&b, "e", 3)).await.unwrap());
    assert_eq!(term.number, TermNumber::new(2));
}

/// Two hosts on one file by mistake: each heartbeat of the one starts the
/// other's count anew, so that the second never leads beside the first.
#[tokio::test]
async fn a_holder_on_another_host_that_beats_is_never_replaced() {
    let place = Place::new();
    let a = member("a", 1);
    let b = member("b", 2);
    let here = Arc::new(ManualClock::new());
    let there = Arc::new(ManualClock::new());
    // The two clocks are months apart, and neither is wrong.
    there.advance(Duration::from_secs(5_000_000));
    let first = place.open_with(boot("here", &here)).await;
    let second = place.open_with(boot("there", &there)).await;
    joins(&first, &a).await;
    joins(&second, &b).await;
    won(first.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    for nonce in 1..200 {
        here.advance(TTL * 6 / 10);
        there.advance(TTL * 6 / 10);
        assert!(matches!(first.heartbeat(&ns(), &beat(&a)).await.unwrap(), Beat::Alive { .. }));
        assert!(matches!(second.heartbeat(&ns(), &beat(&b)).await.unwrap(), Beat::Alive { .. }));
        held(second.claim(&ns(), &claim(&b, "e", nonce)).await.unwrap());
    }
    // And once it is silent, it is replaced after its ttl.
    for nonce in 200..203 {
        there.advance(TTL * 4 / 10);
        second.heartbeat(&ns(), &beat(&b)).await.unwrap();
        if nonce == 202 {
            won(second.claim(&ns(), &claim(&b, "e", nonce)).await.unwrap());
        } else {
            held(second.claim(&ns(), &claim(&b, "e", nonce)).await.unwrap());
        }
    }
    assert_eq!(first.heartbeat(&ns(), &beat(&a)).await.unwrap(), Beat::Ended { superseded: false });
}

/// M4: a free lock of another boot proves nothing. The file may have been
/// copied, or lie on a disk that two kernels see.
#[tokio::test]
async fn a_free_lock_of_another_boot_proves_nothing() {
    let place = Place::new();
    let a = member("a", 1);
    let b = member("b", 2);
    let clock = Arc::new(ManualClock::new());
    let first = place.open_with(boot("here", &clock)).await;
    joins(&first, &a).await;
    won(first.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    // As if another kernel held the lock: on this one it is free.
    let lock = place.dir.path().join(format!("tenure.db-live/{}.lock", a.incarnation));
    std::fs::remove_file(&lock).unwrap();
    std::fs::write(&lock, "").unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&lock.metadata().unwrap());
    place.sql().execute("UPDATE tenure_members SET lock = ?1", [inode.cast_signed()]).unwrap();

    let second = place.open_with(boot("there", &clock)).await;
    joins(&second, &b).await;
    held(second.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    // The same lock, for one of the same boot, is proof.
    let third = place.open_with(boot("here", &clock)).await;
    let c = member("c", 3);
    joins(&third, &c).await;
    won(third.claim(&ns(), &claim(&c, "e", 1)).await.unwrap());
    let seen = third.read(&ns(), &Query { history: 100, ..Query::everything() }).await.unwrap();
    assert!(seen.history.iter().any(|entry| matches!(
        &entry.what,
        Happening::Ended { member, cause: tenure_core::EndCause::ProvenDead, .. } if *member == a
    )));
}

/// M4: a missing lock file proves nothing either.
#[tokio::test]
async fn a_missing_lock_file_proves_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    joins(&store, &b).await;
    won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    std::fs::remove_dir_all(place.dir.path().join("tenure.db-live")).unwrap();
    held(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
}

/// H27: nothing is left behind by members that come and go, nor by a join that
/// was refused.
#[tokio::test]
async fn lock_files_go_with_their_members() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    joins(&store, &a).await;
    won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    assert_eq!(place.lock_files(), [format!("{}.lock", a.incarnation)]);
    assert!(store.liveness_lock(a.incarnation).is_some());
    let namesake = store.join(&ns(), &join(&member("a", 2))).await.unwrap();
    assert!(matches!(namesake, Joined::Taken { by, .. } if by == a.incarnation));
    assert_eq!(place.lock_files().len(), 1, "a refused join leaves nothing");
    store.leave(&ns(), &a).await.unwrap();
    assert!(place.lock_files().is_empty());
    assert!(store.liveness_lock(a.incarnation).is_none());
}

/// A file without a member, left by a crash between lock and row, goes at opening.
#[tokio::test]
async fn orphaned_lock_files_are_removed_at_opening() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    joins(&store, &a).await;
    let orphan = place.dir.path().join(format!("tenure.db-live/{:032x}.lock", 99));
    std::fs::write(&orphan, "").unwrap();
    let again = place.open().await;
    assert_eq!(place.lock_files(), [format!("{}.lock", a.incarnation)]);
    drop((store, again));
}

/// A handle that is dropped is not a process that died: a task of this
/// process may still trust its term.
#[tokio::test]
async fn dropping_a_handle_does_not_hand_its_terms_over_early() {
    let place = Place::new();
    let a = member("a", 1);
    let b = member("b", 2);
    let first = place.open().await;
    let second = place.open().await;
    joins(&first, &a).await;
    joins(&second, &b).await;
    won(first.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    drop(first);
    for nonce in 1..20 {
        held(second.claim(&ns(), &claim(&b, "e", nonce)).await.unwrap());
    }
}

/// M1: a life that is over is not begun again by a late copy of its join, for as
/// long as the journal remembers it.
#[tokio::test]
async fn a_late_join_does_not_bring_a_past_life_back() {
    let place = Place::new();
    let store = place.open().await;
    let a = member("a", 1);
    joins(&store, &a).await;
    store.leave(&ns(), &a).await.unwrap();
    let again = store.join(&ns(), &join(&a)).await.unwrap();
    assert_eq!(again, Joined::Taken { by: a.incarnation, remaining: Duration::ZERO });
    assert!(store.read(&ns(), &Query::members()).await.unwrap().members.is_empty());
    assert!(place.lock_files().is_empty());
}

/// R2, R3: a term is not taken while another process works under it, not even when
/// its ttl has run out; its own life is over all the same, and so is its id.
#[tokio::test]
async fn a_term_is_not_taken_while_a_process_works_under_it() {
    let place = Place::new();
    let (clock, options) = manual();
    let store = place.open_with(options).await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let work = store.liveness_lock(a.incarnation).unwrap();
    let inherited = work.try_clone().unwrap();
    drop(work);
    clock.advance(TTL * 3);
    joins(&store, &b).await;
    let seen = held(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    assert!(seen.holder.is_none(), "all go by the ttl: {seen:?}");
    let why = Some(HeldUp::Processes { member: a.clone() });
    assert_eq!(seen.held_up, why, "the bidder is told what it waits for");
    assert_eq!(view(&store, "e").await.held_up, why, "and so is every reader");
    let ended = store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    assert!(matches!(ended, Beat::Ended { .. }), "M1: {ended:?}");
    let namesake = store.join(&ns(), &join(&member("a", 3))).await.unwrap();
    assert!(matches!(namesake, Joined::Taken { .. }), "{namesake:?}");
    held(store.claim(&ns(), &claim(&b, "e", 2)).await.unwrap());
    drop(inherited);
    assert_eq!(view(&store, "e").await.held_up, None);
    assert_eq!(won(store.claim(&ns(), &claim(&b, "e", 3)).await.unwrap()).number.get(), 2);
}

/// R2: a member that leads two elections works under each by a process of its own. Both
/// elections wait for the last of the two, whichever it is.
#[tokio::test]
async fn no_term_is_taken_while_one_of_several_works_under_the_life() {
    for first_ends in [true, false] {
        let place = Place::new();
        let (clock, options) = manual();
        let store = place.open_with(options).await;
        let a = member("a", 1);
        let b = member("b", 2);
        joins(&store, &a).await;
        for name in ["e", "f"] {
            won(store.claim(&ns(), &claim(&a, name, 1)).await.unwrap());
        }
        let mut works = vec![store.liveness_lock(a.incarnation).unwrap()];
        works.push(store.liveness_lock(a.incarnation).unwrap());
        clock.advance(TTL * 3);
        joins(&store, &b).await;
        drop(if first_ends { works.remove(0) } else { works.remove(1) });
        for name in ["e", "f"] {
            held(store.claim(&ns(), &claim(&b, name, 1)).await.unwrap());
            let why = Some(HeldUp::Processes { member: a.clone() });
            assert_eq!(view(&store, name).await.held_up, why);
        }
        drop(works);
        for name in ["e", "f"] {
            let term = won(store.claim(&ns(), &claim(&b, name, 2)).await.unwrap());
            assert_eq!(term.number.get(), 2);
        }
        let live = std::fs::read_dir(place.dir.path().join("tenure.db-live")).unwrap();
        let names = live.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = names.filter(|name| name.contains(".work")).collect();
        assert!(left.is_empty(), "the files go with the life: {left:?}");
    }
}

/// R2: an orderly end does not wait for those who kept the lock, and an operator
/// who evicts at once overrules them.
#[tokio::test]
async fn giving_up_and_evicting_do_not_wait_for_those_who_work() {
    let place = Place::new();
    let (clock, options) = manual();
    let store = place.open_with(options).await;
    let a = member("a", 1);
    let b = member("b", 2);
    joins(&store, &a).await;
    joins(&store, &b).await;
    let term = won(store.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    let _left_behind = store.liveness_lock(a.incarnation).unwrap();
    store.release(&ns(), &give_back(&a, "e", term.number)).await.unwrap();
    let term = won(store.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
    let _stuck = store.liveness_lock(b.incarnation).unwrap();
    assert_eq!(term.number.get(), 2);
    clock.advance(TTL * 3);
    let c = member("c", 3);
    joins(&store, &c).await;
    held(store.claim(&ns(), &claim(&c, "e", 1)).await.unwrap());
    let evict = |now| Amend::Evict { member: b.id.clone(), now, by: Note::default() };
    assert_eq!(store.amend(&ns(), &evict(false)).await.unwrap(), Amended::NoSuchMember);
    let done = store.amend(&ns(), &evict(true)).await.unwrap();
    assert!(matches!(done, Amended::Done { .. }), "{done:?}");
    assert_eq!(won(store.claim(&ns(), &claim(&c, "e", 2)).await.unwrap()).number.get(), 3);
}

/// A process counts for a member of another boot from its opening on, and not only from
/// when it first wants what that member holds.
#[tokio::test]
async fn a_member_of_another_boot_is_counted_for_from_the_opening_on() {
    let place = Place::new();
    let a = member("a", 1);
    let b = member("b", 2);
    let clock = Arc::new(ManualClock::new());
    let before = place.open_with(boot("first", &clock)).await;
    joins(&before, &a).await;
    won(before.claim(&ns(), &claim(&a, "e", 1)).await.unwrap());
    drop(before);
    let clock = Arc::new(ManualClock::new());
    let after = place.open_with(boot("second", &clock)).await;
    clock.advance(TTL + TTL / 1_000);
    joins(&after, &b).await;
    won(after.claim(&ns(), &claim(&b, "e", 1)).await.unwrap());
}

/// A heartbeat that was written ahead of this clock is no sign of life: the machine was set
/// back to an older state. Once the member's ttl has passed here, no heartbeat brings it
/// back (M1).
#[tokio::test]
async fn a_heartbeat_from_the_future_does_not_keep_a_member() {
    let place = Place::new();
    let a = member("a", 1);
    let clock = Arc::new(ManualClock::new());
    let store = place.open_with(boot("here", &clock)).await;
    joins(&store, &a).await;
    let ahead = "UPDATE tenure_members SET beat_at = beat_at + 1000000000000, beat = beat + 1";
    place.sql().execute(ahead, []).unwrap();
    store.read(&ns(), &Query::members()).await.unwrap();
    clock.advance(TTL + TTL / 1_000);
    let answer = store.heartbeat(&ns(), &beat(&a)).await.unwrap();
    assert!(matches!(answer, Beat::Ended { .. }), "{answer:?}");
}

/// A member that goes on in another boot, as a process that was frozen and moved does, is
/// of that boot from its next heartbeat on: only then do its instants mean something.
#[tokio::test]
async fn a_heartbeat_moves_a_member_to_the_boot_it_beats_in() {
    let place = Place::new();
    let a = member("a", 1);
    let clock = Arc::new(ManualClock::new());
    let before = place.open_with(boot("first", &clock)).await;
    joins(&before, &a).await;
    // Instants of the two boots can be compared, which proves nothing.
    let clock = Arc::new(ManualClock::new());
    clock.advance(Duration::from_secs(1));
    let after = place.open_with(boot("second", &clock)).await;
    let answer = after.heartbeat(&ns(), &beat(&a)).await.unwrap();
    assert!(matches!(answer, Beat::Alive { .. }), "{answer:?}");
    let seen = after.read(&ns(), &Query::members()).await.unwrap();
    assert_eq!(seen.members[0].remaining, TTL, "counted on this clock, not widened");
}
