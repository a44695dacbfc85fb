//! What names cost in requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A register that takes a moment for each request, and counts them.
#[derive(Clone, Debug, Default)]
struct Slow {
    inner: MemoryRegister,
    requests: Arc<AtomicUsize>,
    swaps: Arc<AtomicUsize>,
    lists: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Slow {
    async fn moment(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        tokio::task::yield_now().await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Requests, swaps and listings so far.
    fn counts(&self) -> [usize; 3] {
        [&self.requests, &self.swaps, &self.lists].map(|count| count.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Register for Slow {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        self.moment().await;
        self.inner.load(key, known).await
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        self.moment().await;
        self.swaps.fetch_add(1, Ordering::Relaxed);
        self.inner.swap(key, expect, bytes).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.moment().await;
        self.inner.remove(key, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.moment().await;
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.inner.list(prefix).await
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

struct Owner {
    me: MemberRef,
    clock: Arc<ManualClock>,
    store: CasStore,
    register: Slow,
}

impl Owner {
    async fn joined(shared: &MemoryRegister, id: &str, life: u128) -> Self {
        let register = Slow { inner: shared.clone(), ..Slow::default() };
        let clock = Arc::new(ManualClock::new());
        let options = CasOptions {
            batch: 1_000,
            listing_age: CasOptions::default().listing_age,
            ..options()
        };
        let store = CasStore::new(Arc::new(register.clone()), clock.clone(), options).unwrap();
        let owner = Self { me: member(id, life), clock, store, register };
        let joined = owner.store.join(&ns(), &Join::new(owner.me.clone(), TTL)).await.unwrap();
        assert!(matches!(joined, Joined::In { .. }));
        owner
    }

    /// Takes these, and says how many it got.
    async fn take(&self, texts: &[String], nonce: u64) -> usize {
        let ops = texts
            .iter()
            .map(|text| BindOp::take(Name::new(text).unwrap(), Nonce::new(nonce), Value::empty()));
        let bind = Bind::new(self.me.clone(), TTL, ops);
        match self.store.bind(&ns(), &bind).await.unwrap() {
            Bindings::Answered(answers) => {
                answers.iter().filter(|answer| matches!(answer, BindAnswer::Bound(_))).count()
            }
            other => panic!("{other:?}"),
        }
    }

    async fn pass(&self, time: Duration) {
        for _ in 0..4 {
            self.clock.advance(time / 4);
            let beat = Heartbeat::new(self.me.clone(), TTL);
            let alive = self.store.heartbeat(&ns(), &beat).await.unwrap();
            assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
        }
    }
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("n{n:06}")).collect()
}

/// One load and one swap for each name, a few at a time; one look at the floor and one
/// heartbeat for all of them; no listing.
#[tokio::test(flavor = "current_thread")]
async fn a_thousand_names_in_one_request_cost_a_load_and_a_swap_each() {
    let owner = Owner::joined(&MemoryRegister::new(), "a", 1).await;
    owner.take(&["first".to_owned()], 1).await;
    let before = owner.register.counts();
    assert_eq!(owner.take(&texts(1_000), 2).await, 1_000);
    let now = owner.register.counts();
    // The floor has no record yet, so that it is looked at before and after.
    assert_eq!([now[0] - before[0], now[1] - before[1], now[2]], [2_003, 1_001, 0]);
    let most = owner.register.most.load(Ordering::Relaxed);
    assert_eq!(most, CasOptions::default().concurrency, "requests under way at once");
}

/// What it costs to take one name from a dead owner of so many; and for an owner of as
/// many to leave, and to have one's place taken.
async fn cost_of_an_end(owned: usize) -> [[usize; 3]; 2] {
    let shared = MemoryRegister::new();
    let dead = Owner::joined(&shared, "dead", 1).await;
    let leaver = Owner::joined(&shared, "l", 2);
    let leaver = leaver.await;
    for part in texts(owned).chunks(1_000) {
        assert_eq!(dead.take(part, 1).await, part.len());
        let others: Vec<_> = part.iter().map(|text| format!("l-{text}")).collect();
        assert_eq!(leaver.take(&others, 1).await, part.len());
    }
    let heir = Owner::joined(&shared, "heir", 3).await;
    let last = &texts(owned)[owned - 1..];
    assert_eq!(heir.take(last, 1).await, 0, "it is owned");
    heir.pass(WIDE).await;
    let before = heir.register.counts();
    assert_eq!(heir.take(last, 2).await, 1, "taken");
    let taken = heir.register.counts();
    let start = leaver.register.counts();
    leaver.store.leave(&ns(), &leaver.me).await.unwrap();
    let left = leaver.register.counts();
    let cost = |from: [usize; 3], to: [usize; 3]| std::array::from_fn(|i| to[i] - from[i]);
    [cost(before, taken), cost(start, left)]
}

/// M5, Q6: to end an owner of 100,000 names and to take one of them costs what one costs.
#[tokio::test(flavor = "current_thread")]
async fn ending_an_owner_of_very_many_names_costs_what_one_costs() {
    let one = cost_of_an_end(200).await;
    let many = cost_of_an_end(100_000).await;
    assert_eq!(many, one);
    assert!(one[0][0] <= 8 && one[1][0] <= 8, "{one:?}");
}
