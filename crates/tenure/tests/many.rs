//! Ten thousand elections held by one member. A binary of its own, since it
//! counts every byte the process allocates.

#![allow(clippy::unwrap_used, unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{secs, within};
use tenure::testing::{ManualClock, Stage, StoreVerb};
use tenure_core::{
    Bid, Claim, ElectionName, Incarnation, Join, MemberId, MemberRef, Namespace, Nonce,
};
use tenure_store::{MemoryStore, Store};

static LIVE: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, counted.
struct Counting;

// Safety: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MANY: usize = 10_000;

/// One test at a time: they count the same bytes.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("election-{n:05}"))
}

/// Leads `count` elections with one member of a fresh stage.
async fn lead(count: usize) -> (Stage, tenure::Tenure, Vec<tenure::Leadership>) {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let held = win_all(tenure.campaign_all(names(count)).unwrap()).await;
    assert_eq!(held.len(), count);
    stage.settle().await;
    (stage, tenure, held)
}

/// Waits for the member's thread, so that nothing is freed while the next test
/// counts.
async fn end(tenure: tenure::Tenure, held: Vec<tenure::Leadership>) {
    drop(held);
    within(tenure.shutdown()).await.unwrap();
}

async fn win_all(mut campaigns: tenure::Campaigns) -> Vec<tenure::Leadership> {
    let mut held = Vec::new();
    while let Some(leadership) = within(campaigns.next()).await {
        held.push(leadership.unwrap());
    }
    held
}

/// C12: a member that is in the store already could bid for the first at once;
/// all the same they go together.
#[tokio::test]
async fn ten_thousand_elections_are_claimed_in_as_few_requests_as_the_batch_allows() {
    let _alone = ALONE.lock().await;
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let first = within(tenure.election("first").campaign()).await.unwrap();
    stage.faults().reset_counts();
    let held = win_all(tenure.campaign_all(names(MANY)).unwrap()).await;
    let counts = stage.faults().counts();
    let batch = tenure.capabilities().batch;
    assert_eq!(counts.calls(StoreVerb::Claim) as usize, MANY.div_ceil(batch));
    assert_eq!((held.len(), counts.bids as usize), (MANY, MANY));
    assert!(first.is_current());
    drop(first);
    end(tenure, held).await;
}

/// C12: the steady load of ten thousand elections is that of one, and claiming
/// them takes one statement for each batch.
#[tokio::test]
async fn ten_thousand_elections_cost_the_store_what_one_does() {
    let _alone = ALONE.lock().await;
    let mut writes = Vec::new();
    for count in [1, MANY] {
        let (stage, tenure, held) = lead(count).await;
        let batch = tenure.capabilities().batch;
        let counts = stage.faults().counts();
        assert_eq!(counts.bids as usize, count);
        assert_eq!(counts.calls(StoreVerb::Claim) as usize, count.div_ceil(batch));
        stage.faults().reset_counts();
        stage.advance(secs(60)).await;
        let counts = stage.faults().counts();
        writes.push((counts.writes(), counts.calls(StoreVerb::Heartbeat), counts.terms));
        assert!(held.iter().all(tenure::Leadership::is_current));
        end(tenure, held).await;
    }
    assert_eq!(writes[0], writes[1], "writes, heartbeats and terms named in a minute");
    assert!(writes[0].0 >= 20, "{writes:?}");
}

/// The bar: what the client keeps for an election it holds is less than a
/// kilobyte. What the memory store keeps for it is measured alone and taken
/// off.
#[tokio::test]
async fn a_held_election_costs_less_than_a_kilobyte() {
    let _alone = ALONE.lock().await;
    // What the first one allocates for good is not the election's.
    let (_stage, tenure, held) = lead(1).await;
    end(tenure, held).await;
    let before = LIVE.load(Ordering::Relaxed);
    let store = store_alone().await;
    let stores = LIVE.load(Ordering::Relaxed) - before;
    drop(store);
    let before = LIVE.load(Ordering::Relaxed);
    let (_stage, tenure, held) = lead(MANY).await;
    let both = LIVE.load(Ordering::Relaxed) - before;
    assert_eq!(held.len(), MANY);
    let each = (both - stores) / MANY as i64;
    assert!((100..1024).contains(&each), "{each} bytes for each election");
    end(tenure, held).await;
}

/// What the client keeps does not grow with time: an hour of heartbeats later it
/// is what it was.
#[tokio::test]
async fn an_hour_of_heartbeats_leaves_nothing_behind() {
    let _alone = ALONE.lock().await;
    let (stage, tenure, held) = lead(10).await;
    // Tables that are made once, or grow once, are there by then.
    stage.advance(secs(900)).await;
    stage.faults().reset_counts();
    let before = LIVE.load(Ordering::Relaxed);
    stage.advance(secs(3600)).await;
    let grown = LIVE.load(Ordering::Relaxed) - before;
    let beats = stage.faults().counts().calls(StoreVerb::Heartbeat);
    assert!(beats >= 1440, "{beats} heartbeats");
    assert!(grown < beats as i64 * 4, "{grown} bytes more after {beats} heartbeats");
    assert!(held.iter().all(tenure::Leadership::is_current));
    end(tenure, held).await;
}

/// A memory store in which one member holds many elections.
async fn store_alone() -> MemoryStore {
    let store = MemoryStore::with_clock(Arc::new(ManualClock::new()));
    let ns = Namespace::default();
    let member = MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1));
    let ttl = secs(10);
    store.join(&ns, &Join::new(member.clone(), ttl)).await.unwrap();
    for batch in 0..MANY / 1000 {
        let bid = |n: usize| {
            let election = ElectionName::new(format!("election-{:05}", batch * 1000 + n)).unwrap();
            Bid::new(election, Nonce::new(1))
        };
        let claim = Claim::new(member.clone(), ttl, (0..1000).map(bid));
        store.claim(&ns, &claim).await.unwrap();
    }
    store
}
