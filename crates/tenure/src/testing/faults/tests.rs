//! Each fault does what it says to the store behind it, and nothing else.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tenure_core::{
    Beat, Bid, Claim, Claimed, Claims, ElectionName, Heartbeat, Hint, Incarnation, Join, MemberId,
    MemberRef, Namespace, Nonce, Note, Query, Seq,
};

use super::{Fault, FaultyStore, HintFault, StoreVerb};
use tenure_store::{ErrorKind, Followed, MemoryStore, Page, Store};

struct Bench {
    store: FaultyStore,
    /// The store behind it, where nothing goes wrong.
    behind: MemoryStore,
    ns: Namespace,
    me: MemberRef,
}

const TTL: Duration = Duration::from_secs(600);

impl Bench {
    async fn new() -> Self {
        let behind = MemoryStore::new();
        let store = FaultyStore::new(behind.clone().shared());
        let me = MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1));
        let bench = Self { store, behind, ns: Namespace::default(), me };
        let join = Join::new(bench.me.clone(), TTL).with_supersede(false);
        bench.store.join(&bench.ns, &join).await.unwrap();
        bench
    }

    fn claim(&self, nonce: u64) -> Claim {
        let bid = Bid::new(ElectionName::new("e").unwrap(), Nonce::new(nonce));
        Claim::new(self.me.clone(), TTL, [bid])
    }

    /// The newest number, as the store behind has it.
    async fn number(&self) -> u64 {
        let name = ElectionName::new("e").unwrap();
        let seen = self.behind.read(&self.ns, &Query::elections([name])).await.unwrap();
        seen.elections[0].number.get()
    }

    async fn wins(&self, nonce: u64) -> u64 {
        match self.store.claim(&self.ns, &self.claim(nonce)).await.unwrap() {
            Claims::Answered(answers) => match &answers[0] {
                Claimed::Won(term) => term.number.get(),
                held => panic!("{held:?}"),
            },
            ended => panic!("{ended:?}"),
        }
    }

    async fn beat(&self) -> tenure_store::Result<Beat> {
        let beat = Heartbeat::new(self.me.clone(), TTL);
        self.store.heartbeat(&self.ns, &beat).await
    }
}

#[tokio::test]
async fn a_failed_request_is_applied_or_not_as_the_fault_says() {
    for (fault, applied, may_have_applied) in [
        (Fault::FailBefore, 0, false),
        (Fault::FailAfter, 1, true),
        (Fault::LoseRequest, 0, true),
        (Fault::Late, 0, true),
    ] {
        let bench = Bench::new().await;
        bench.store.script(StoreVerb::Claim, [fault]);
        let error = bench.store.claim(&bench.ns, &bench.claim(1)).await.unwrap_err();
        assert_eq!(error.may_have_applied(), may_have_applied, "{fault:?}: {error}");
        assert_eq!(bench.number().await, applied, "{fault:?}");
        assert_eq!(bench.wins(1).await, 1, "{fault:?}: the retry goes through");
        assert_eq!(bench.store.counts().failures, 1);
    }
}

#[tokio::test]
async fn a_late_request_is_applied_when_it_is_delivered() {
    let bench = Bench::new().await;
    bench.store.script(StoreVerb::Claim, [Fault::Late]);
    bench.store.script(StoreVerb::Amend, [Fault::Late]);
    bench.store.claim(&bench.ns, &bench.claim(1)).await.unwrap_err();
    let election = ElectionName::new("other").unwrap();
    let by = Note::default();
    let pause = tenure_core::Amend::Pause { election, reason: Note::default(), by };
    bench.store.amend(&bench.ns, &pause).await.unwrap_err();
    assert_eq!(bench.store.deliver_late().await.unwrap(), 2);
    assert_eq!(bench.number().await, 1);
    let seen = bench.behind.read(&bench.ns, &Query::everything()).await.unwrap();
    assert!(seen.elections.iter().any(|e| e.paused.is_some()));
    assert_eq!(bench.store.deliver_late().await.unwrap(), 0);
}

#[tokio::test]
async fn a_doubled_claim_reaches_the_store_twice_and_is_one_term() {
    let bench = Bench::new().await;
    bench.store.script(StoreVerb::Claim, [Fault::Double]);
    assert_eq!(bench.wins(1).await, 1);
    assert_eq!(bench.number().await, 1);
    assert_eq!(bench.store.counts().calls(StoreVerb::Claim), 1, "the caller made one request");
}

#[tokio::test]
async fn what_is_held_goes_on_when_it_is_let_go() {
    for (fault, applied_meanwhile) in [(Fault::Hold, 0), (Fault::HoldReply, 1)] {
        let bench = Bench::new().await;
        bench.store.script(StoreVerb::Claim, [fault]);
        let claim = bench.claim(1);
        let mut claiming = Box::pin(bench.store.claim(&bench.ns, &claim));
        assert!(waits(&mut claiming).await);
        assert_eq!(bench.number().await, applied_meanwhile, "{fault:?}");
        bench.store.let_go();
        assert!(claiming.await.is_ok());
        assert_eq!(bench.number().await, 1);
    }
}

/// Polls once, and says whether there is nothing yet.
async fn waits<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test(start_paused = true)]
async fn a_delay_holds_the_request_or_the_reply_and_a_hang_never_ends() {
    let bench = Bench::new().await;
    let short = Duration::from_secs(2);
    let long = Duration::from_secs(3);
    let claim = bench.claim(1);
    for (fault, applied_meanwhile) in [(Fault::Delay(long), 0), (Fault::DelayReply(long), 1)] {
        bench.store.script(StoreVerb::Claim, [fault]);
        let claiming = bench.store.claim(&bench.ns, &claim);
        assert!(tokio::time::timeout(short, claiming).await.is_err(), "{fault:?}");
        assert_eq!(bench.number().await, applied_meanwhile, "{fault:?}");
    }
    bench.store.script(StoreVerb::Heartbeat, [Fault::Hang]);
    assert!(tokio::time::timeout(TTL * 100, bench.beat()).await.is_err());
    bench.store.slow(long);
    assert!(tokio::time::timeout(short, bench.beat()).await.is_err());
    assert!(tokio::time::timeout(long * 2, bench.beat()).await.is_ok());
}

#[tokio::test]
async fn nothing_gets_through_an_outage() {
    let bench = Bench::new().await;
    bench.store.script(StoreVerb::Claim, [Fault::FailAfter]);
    bench.store.outage(true);
    let error = bench.store.claim(&bench.ns, &bench.claim(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(!error.may_have_applied());
    assert!(bench.beat().await.is_err());
    assert!(bench.store.follow(&bench.ns).await.is_err());
    bench.store.outage(false);
    assert!(bench.beat().await.is_ok());
    assert!(bench.store.claim(&bench.ns, &bench.claim(1)).await.is_err(), "the script waited");
}

#[tokio::test]
async fn followers_fail_once_and_go_on_with_a_look_after_an_outage() {
    let bench = Bench::new().await;
    let mut hints = bench.store.follow(&bench.ns).await.unwrap();
    assert_eq!(hints.next().await.unwrap(), Followed::Hint(Hint::Anything));
    bench.store.outage(true);
    assert!(hints.next().await.is_err());
    assert!(bench.store.journal(&bench.ns, Seq::START).await.is_err());
    bench.behind.claim(&bench.ns, &bench.claim(1)).await.unwrap();
    let mut waiting = Box::pin(hints.next());
    assert!(waits(&mut waiting).await, "no hot loop during the outage");
    bench.store.outage(false);
    assert_eq!(waiting.await.unwrap(), Followed::Hint(Hint::Anything));
    let Page::Entries(missed) = bench.store.journal(&bench.ns, Seq::new(1)).await.unwrap() else {
        panic!()
    };
    assert_eq!(missed[0].seq, Seq::new(2), "what happened meanwhile is there");
}

#[tokio::test]
async fn hints_are_dropped_doubled_and_forged_and_growth_is_not() {
    let bench = Bench::new().await;
    let mut hints = bench.store.follow(&bench.ns).await.unwrap();
    bench.store.hints(HintFault::Drop);
    assert_eq!(hints.next().await.unwrap(), Followed::Hint(Hint::Anything), "the first comes");
    bench.wins(1).await;
    assert!(
        matches!(hints.next().await.unwrap(), Followed::Grown(_)),
        "the journal's growth comes"
    );
    let mut waiting = Box::pin(hints.next());
    assert!(waits(&mut waiting).await, "the hint is lost");
    drop(waiting);
    bench.store.hints(HintFault::Double);
    bench.wins(2).await;
    let told = [hints.next().await.unwrap(), hints.next().await.unwrap()];
    assert_eq!(told[0], told[1]);
    bench.store.hints(HintFault::Deliver);
    while !matches!(hints.next().await.unwrap(), Followed::Grown(_)) {}
    let forged = Hint::Gone(Incarnation::from_u128(9));
    bench.store.forge(forged.clone());
    assert_eq!(hints.next().await.unwrap(), Followed::Hint(forged));
}

/// C12 is counted with this.
#[tokio::test]
async fn every_call_is_counted_with_what_it_carries() {
    let bench = Bench::new().await;
    bench.wins(1).await;
    bench.beat().await.unwrap();
    bench.beat().await.unwrap();
    bench.store.read(&bench.ns, &Query::nothing()).await.unwrap();
    let counts = bench.store.counts();
    assert_eq!(counts.calls(StoreVerb::Heartbeat), 2);
    assert_eq!((counts.bids, counts.terms, counts.releases), (1, 0, 0));
    assert_eq!(counts.writes(), 4, "join, claim and two heartbeats");
    let called = bench.store.called(StoreVerb::Heartbeat, 3);
    let (_, beat) = tokio::join!(called, bench.beat());
    beat.unwrap();
    bench.store.reset_counts();
    assert_eq!(bench.store.counts().writes(), 0);
}
