//! What users of other registries report, each as a test of this one. The names of the peers'
//! issues stand in the comments; what is tested elsewhere is listed in the track record.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tenure::naming::Value;
use tenure::store::{SharedStore, Store};
use tenure::testing::{Fault, FaultyStore, Stage, StoreVerb};
use tenure::{MemberId, Tenure};
use tenure_registry::{RegisterError, Registered, Registry};
use tenure_store::MemoryStore;
use tenure_testkit::{let_pass, stamp, until as until_it, within};

async fn two() -> (Stage, Registry, Registry) {
    let stage = Stage::new();
    let a = Registry::open(&stage.connect("a").await.unwrap(), "s").unwrap();
    let b = Registry::open(&stage.connect("b").await.unwrap(), "s").unwrap();
    within(a.ready()).await.unwrap();
    within(b.ready()).await.unwrap();
    (stage, a, b)
}

async fn passes(stage: &Stage, holds: impl Fn() -> bool) {
    while !holds() {
        stage.advance(Duration::from_millis(500)).await;
    }
}

/// Horde #258: values vanish (L21: a value may change). A value that was set is in every copy,
/// also in one that was cut off meanwhile and in one that opens later.
#[tokio::test]
async fn a_value_does_not_vanish() {
    let (stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    stage.faults().script(StoreVerb::Names, [Fault::FailBefore; 6]);
    for n in 0..20 {
        mine.set(Value::at(format!("h:{n}")).unwrap()).await.unwrap();
    }
    let last = |found: tenure_registry::Found| found.value().endpoint() == Some("h:19");
    within(passes(&stage, || b.lookup("n").is_some_and(last))).await;
    let late = Registry::open(&stage.connect("c").await.unwrap(), "s").unwrap();
    within(late.ready()).await.unwrap();
    assert!(late.lookup("n").is_some_and(last));
}

/// gproc #30: a name is never freed. It is free when its handle is dropped, when the attempt to
/// register it is given up half way, and when its owner is gone.
#[tokio::test]
async fn a_name_is_always_freed() {
    let (stage, a, b) = two().await;
    drop(a.register("n", Value::empty()).await.unwrap());
    drop(within(b.lock("n", Value::empty())).await.unwrap());
    // The caller stops waiting while the request is on its way.
    stage.faults().script(StoreVerb::Bind, [Fault::Hold]);
    let given_up = tokio::time::timeout(Duration::from_millis(50), a.register("m", Value::empty()));
    assert!(given_up.await.is_err());
    stage.faults().let_go();
    let freed = async {
        loop {
            stage.advance(Duration::from_millis(500)).await;
            if let Ok(mine) = b.register("m", Value::empty()).await {
                break mine;
            }
        }
    };
    assert!(within(freed).await.is_current());
}

/// A process of its own: what is done to its store is done to no other's.
async fn apart(store: &SharedStore, id: &str) -> (FaultyStore, Registry) {
    let faults = FaultyStore::new(store.clone());
    let builder = Tenure::with_store(faults.shared()).id(id).ttl(Duration::from_secs(1));
    let names = Registry::open(&builder.connect().await.unwrap(), "s").unwrap();
    within(names.ready()).await.unwrap();
    (faults, names)
}

/// Tries to register the name without a pause until it has it; and the moment at which it was
/// answered.
async fn fights(names: Registry, name: &str) -> (Registered, u64) {
    loop {
        match names.register(name, Value::empty()).await {
            Ok(mine) => return (mine, stamp()),
            Err(RegisterError::Taken(_)) => {
                let_pass(Duration::from_millis(1), "the pace at which a name is fought for").await;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// The moment until which a process took a name for its own, sampled until it is over.
async fn owned_until(mine: &Registered) -> u64 {
    let mut until = mine.trusted_until();
    while mine.is_current() {
        until = mine.trusted_until().max(until);
        let_pass(Duration::from_millis(1), "the pace at which ownership is sampled").await;
    }
    until.as_nanos()
}

/// swarm #86, #124: two copies after a heal. The one that is cut off has lost the name before
/// the other, which tries all the while, can take it; it does not have it after the heal.
#[tokio::test]
async fn after_a_heal_there_is_one_owner() {
    let store = MemoryStore::new().shared();
    let (cut, a) = apart(&store, "a").await;
    let (_, b) = apart(&store, "b").await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    cut.outage(true);
    let tries = tokio::spawn(fights(b, "n"));
    let until = within(owned_until(&mine)).await;
    assert_eq!(within(mine.lost()).await, tenure::LostReason::TrustEnded);
    let (theirs, at) = within(tries).await.unwrap();
    assert!(until < at, "trusted until {until:?}, and another owns it from {at:?} at the latest");
    assert!(theirs.token() > mine.token() && !mine.is_current());
    cut.outage(false);
    // Giving the lost one back does nothing to the new one, nor does the heal.
    drop(within(mine.release()).await);
    let there = async { a.lookup_consistent("n").await.unwrap().unwrap().token };
    assert_eq!(within(there).await, theirs.token());
    let sees = || async { a.lookup("n").is_some_and(|found| found.token() == theirs.token()) };
    until_it("the one that was cut off sees it", sees).await;
    assert!(theirs.is_current());
}

/// kameo #131: a duplicate registration corrupts the table. It is refused, and what was there
/// is as it was: for both who ask, in both copies, and in the store.
#[tokio::test]
async fn a_duplicate_changes_nothing() {
    let (stage, a, b) = two().await;
    let mine = a.register("n", Value::at("h:1").unwrap()).await.unwrap();
    for names in [&a, &b, &a] {
        let refused = names.register("n", Value::at("h:2").unwrap()).await.unwrap_err();
        assert!(matches!(refused, RegisterError::Taken(_)), "{refused}");
    }
    stage.advance(Duration::from_secs(5)).await;
    within(b.reached(mine.rev())).await.unwrap();
    for names in [&a, &b] {
        let found = names.lookup("n").unwrap();
        assert_eq!((found.token(), found.value().endpoint()), (mine.token(), Some("h:1")));
        assert_eq!(names.all().len(), 1);
    }
    mine.release().await.unwrap();
    assert!(b.lookup_consistent("n").await.unwrap().is_none());
}

/// etcd #14189: a client stops renewing in silence. An owner that cannot renew is told before
/// another, which tries all the while, has the name; without a request, and it says so by
/// itself.
#[tokio::test]
async fn an_owner_that_cannot_renew_is_told() {
    let store = MemoryStore::new().shared();
    let (silent, a) = apart(&store, "a").await;
    let (_, b) = apart(&store, "b").await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    silent.script(StoreVerb::Heartbeat, [Fault::Hang; 100]);
    let tries = tokio::spawn(fights(b, "n"));
    let told = async { (mine.lost().await, stamp()) };
    let (reason, told_at) = within(told).await;
    assert_eq!(reason, tenure::LostReason::TrustEnded);
    assert!(!mine.is_current());
    let (theirs, at) = within(tries).await.unwrap();
    assert!(told_at < at, "told at {told_at:?}, and another owns it from {at:?} at the latest");
    assert!(theirs.is_current() && theirs.token() > mine.token());
}

/// syn #84: a start takes two minutes where there are twelve nodes. What a process asks of the
/// store when it opens a registry does not depend on how many others there are, nor on how
/// many names they own.
#[tokio::test]
async fn opening_costs_the_same_however_many_there_are() {
    const VERBS: [StoreVerb; 4] =
        [StoreVerb::Names, StoreVerb::Read, StoreVerb::Bind, StoreVerb::Claim];
    let store = MemoryStore::new().shared();
    let mut open = Vec::new();
    let mut costs = Vec::new();
    let mut owned = Vec::new();
    for n in 0..12 {
        let (faults, names) = apart(&store, &format!("p{n}")).await;
        let counts = faults.counts();
        costs.push(VERBS.map(|verb| counts.calls(verb)));
        assert_eq!(names.all().len(), n * 50, "it is ready with all of them");
        let all = names.register_all((0..50).map(|i| (format!("{n}/{i}"), Value::empty()))).await;
        owned.extend(all.unwrap().into_iter().map(Result::unwrap));
        open.push(names);
    }
    // One question for the names and one for the members; a second where a hint came between.
    assert!(costs.iter().all(|cost| cost[0] <= 2 && cost[1] <= 2), "{costs:?}");
    assert!(costs.iter().all(|cost| cost[2..] == [0, 0]), "{costs:?}");
    let newest = owned.iter().map(Registered::rev).max().unwrap();
    for names in &open {
        within(names.reached(newest)).await.unwrap();
        assert_eq!(names.all().len(), 600);
    }
}

/// otp #3923: it hangs for hours. A store that does not answer is an error after the ttl, which
/// says *unknown* and not *taken*; what it did all the same is undone.
#[tokio::test]
async fn a_store_that_does_not_answer_is_unknown_and_not_taken() {
    let (stage, a, b) = two().await;
    stage.faults().script(StoreVerb::Bind, [Fault::HoldReply; 6]);
    let asks = tokio::spawn(async move { a.register("n", Value::empty()).await });
    let answered = async {
        while !asks.is_finished() {
            stage.advance(Duration::from_secs(1)).await;
        }
        asks.await.unwrap()
    };
    let refused = within(answered).await.expect_err("nothing was answered");
    let RegisterError::Unknown { waited, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*waited, Duration::from_secs(10));
    assert!(refused.to_string().contains("may have been done, and is undone"), "{refused}");
    let freed = async {
        loop {
            stage.faults().let_go();
            stage.advance(Duration::from_secs(1)).await;
            let asks = b.clone();
            let asks = tokio::spawn(async move { asks.register("n", Value::empty()).await });
            while !asks.is_finished() {
                stage.faults().let_go();
                stage.advance(Duration::from_millis(500)).await;
            }
            if let Ok(mine) = asks.await.unwrap() {
                break mine;
            }
        }
    };
    assert!(within(freed).await.is_current());
}

/// DGen 0.4.1: unregistering deletes another's binding. A release names its token: what was
/// lost before is not given back in another's name.
#[tokio::test]
async fn a_release_does_not_touch_the_next_owner() {
    let (stage, a, b) = two().await;
    let mine = a.register("n", Value::empty()).await.unwrap();
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&MemberId::new("a").unwrap()).await.unwrap();
    let theirs = within(b.lock("n", Value::empty())).await.unwrap();
    // The old owner does not know yet, and gives it back; later it drops what it lost.
    drop(within(mine.release()).await);
    stage.advance(Duration::from_secs(5)).await;
    let there = a.lookup_consistent("n").await.unwrap().unwrap();
    assert_eq!(there.token, theirs.token());
    assert!(theirs.is_current());
}

/// DGen 0.3: two owners in six steps, by an acknowledgement that never touched the store. (1) A
/// registers, (2) and the answer is lost; (3) A's life ends; (4) B takes the name; (5) A's
/// request arrives once more; (6) A hears an answer. A must not own it.
#[tokio::test]
async fn a_late_answer_makes_no_second_owner() {
    let (stage, a, b) = two().await;
    let _other = a.register("other", Value::empty()).await.unwrap();
    stage.faults().script(StoreVerb::Bind, [Fault::Late]);
    let asks = tokio::spawn({
        let a = a.clone();
        async move { a.register("n", Value::empty()).await }
    });
    stage.settle().await;
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&MemberId::new("a").unwrap()).await.unwrap();
    let theirs = within(b.lock("n", Value::empty())).await.unwrap();
    stage.faults().deliver_late().await.unwrap();
    let answered = async {
        while !asks.is_finished() {
            stage.advance(Duration::from_millis(500)).await;
        }
        asks.await.unwrap()
    };
    match within(answered).await {
        Ok(mine) => panic!("two owners: tokens {} and {}", mine.token(), theirs.token()),
        Err(RegisterError::Taken(binding)) => assert_eq!(binding.token, theirs.token()),
        Err(other) => panic!("{other}"),
    }
    assert!(theirs.is_current());
}

/// DGen 0.4.1: after the leader's death nothing is registered until there is another (740 ms
/// at 200,000 names). Here no member leads, and the clock stands still: a call that waited for a
/// leader would wait for ever.
#[tokio::test]
async fn a_leaders_death_holds_no_registration_up() {
    let (stage, a, b) = two().await;
    let leader = Registry::open(&stage.connect("leader").await.unwrap(), "s").unwrap();
    within(leader.ready()).await.unwrap();
    let _standing = leader.stand().unwrap();
    within(stage.until_led(a.leader_key())).await.unwrap();
    let theirs = leader.register("of the leader", Value::empty()).await.unwrap();
    // No other takes its place.
    stage.pause(a.leader_key()).await.unwrap();
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&MemberId::new("leader").unwrap()).await.unwrap();
    let mut kept = Vec::new();
    for n in 0..50 {
        let names = if n % 2 == 0 { &a } else { &b };
        kept.push(within(names.register(&format!("n{n}"), Value::empty())).await.unwrap());
    }
    let taken = within(b.register("of the leader", Value::empty())).await.unwrap();
    assert!(taken.token() > theirs.token());
    assert!(b.leader().await.unwrap().is_none());
}

/// DGen: a `member_down` of an older life that arrives late removes the member that has come
/// back, and with it its names. Here an end names a life: the late leave of the older one
/// changes nothing.
#[tokio::test]
async fn the_late_end_of_an_older_life_takes_no_name_of_the_newer_one() {
    let stage = Stage::new();
    let member = stage.connect("m").await.unwrap();
    let names = Registry::open(&member, "s").unwrap();
    let first = within(names.register("n", Value::empty())).await.unwrap();
    let older = names.lookup_consistent("n").await.unwrap().unwrap().owner.unwrap();
    let operator = stage.connect("operator").await.unwrap();
    operator.evict_now(&MemberId::new("m").unwrap()).await.unwrap();
    let lost = async {
        while first.is_current() {
            stage.advance(Duration::from_millis(500)).await;
        }
    };
    within(lost).await;
    let again = within(names.register("n", Value::empty())).await.unwrap();
    let newer = names.lookup_consistent("n").await.unwrap().unwrap().owner.unwrap();
    assert!(newer.id == older.id && newer.incarnation != older.incarnation);
    // The word of the older life's end comes once more.
    stage.faults().leave(&tenure::Namespace::default(), &older).await.unwrap();
    stage.advance(Duration::from_secs(5)).await;
    assert!(again.is_current());
    assert_eq!(names.lookup("n").unwrap().token(), again.token());
}
