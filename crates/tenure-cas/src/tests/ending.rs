//! What it costs to take over from a member that held very much (M5).

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A register that counts what is asked of it.
#[derive(Clone, Debug, Default)]
struct Counted {
    inner: MemoryRegister,
    requests: Arc<AtomicU64>,
    /// The cells that listings showed.
    listed: Arc<AtomicU64>,
}

impl Counted {
    fn counts(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.listed.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Register for Counted {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.load(key, known).await
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.swap(key, expect, bytes).await
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.remove(key, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let listed = self.inner.list(prefix).await?;
        self.listed.fetch_add(listed.len() as u64, Ordering::Relaxed);
        Ok(listed)
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

struct One {
    me: MemberRef,
    clock: Arc<ManualClock>,
    store: CasStore,
    register: Counted,
}

impl One {
    fn joined(shared: &MemoryRegister, id: &str, life: u128) -> Self {
        let register = Counted { inner: shared.clone(), ..Counted::default() };
        let clock = Arc::new(ManualClock::new());
        let store = CasStore::new(Arc::new(register.clone()), clock.clone(), options()).unwrap();
        let one = Self { me: member(id, life), clock, store, register };
        let join = Join::new(one.me.clone(), TTL);
        assert!(matches!(ready(one.store.join(&ns(), &join)).unwrap(), Joined::In { .. }));
        one
    }

    /// Bids for these, and says how many it won.
    fn claim(&self, names: impl Iterator<Item = String>, nonce: u64) -> usize {
        let bids = names.map(|name| Bid::new(named(&name), Nonce::new(nonce)));
        let claim = Claim::new(self.me.clone(), TTL, bids);
        let Claims::Answered(answers) = ready(self.store.claim(&ns(), &claim)).unwrap() else {
            panic!("ended")
        };
        answers.iter().filter(|answer| matches!(answer, Claimed::Won(_))).count()
    }

    fn pass(&self, time: Duration) {
        let beat = Heartbeat::new(self.me.clone(), TTL);
        for _ in 0..4 {
            self.clock.advance(time / 4);
            let alive = ready(self.store.heartbeat(&ns(), &beat)).unwrap();
            assert!(matches!(alive, Beat::Alive { .. }), "{alive:?}");
        }
    }
}

/// What it costs to take over one election, and another when the dead one is long dead,
/// from a member that held so many; requests, and cells listed.
fn cost_of_a_take_over(held: usize) -> [(u64, u64); 2] {
    let shared = MemoryRegister::new();
    let dead = One::joined(&shared, "dead", 1);
    let names: Vec<_> = (0..held).map(|n| format!("e{n}")).collect();
    for some in names.chunks(100) {
        assert_eq!(dead.claim(some.iter().cloned(), 1), some.len());
    }
    let heir = One::joined(&shared, "heir", 2);
    let bid = |nonce| heir.claim(names.iter().rev().take(1).cloned(), nonce);
    assert_eq!(bid(1), 0, "it is held");
    heir.pass(WIDE);
    let before = heir.register.counts();
    assert_eq!(bid(2), 1, "taken over");
    let first = heir.register.counts();
    heir.pass(TTL * 3);
    let later = heir.register.counts();
    // A new election, when the dead one could be tidied up.
    assert_eq!(heir.claim(["new".to_owned()].into_iter(), 3), 1);
    let second = heir.register.counts();
    [(first.0 - before.0, first.1 - before.1), (second.0 - later.0, second.1 - later.1)]
}

/// M5, P2: to end a member that held 100,000 elections, and to take one of them over, costs
/// the same requests as if it had held that one, then and later.
#[test]
fn taking_over_from_a_leader_of_very_many_costs_what_one_costs() {
    let one = cost_of_a_take_over(1);
    assert_eq!(cost_of_a_take_over(100_000), one);
    assert!(one[0].0 <= 8, "{one:?}");
}

/// M5, H27, P2: a member that leaves a namespace of very many elections, or joins it, does not
/// look at each of them.
#[test]
fn leaving_and_joining_do_not_look_at_very_many_elections() {
    let shared = MemoryRegister::new();
    let leader = One::joined(&shared, "leader", 1);
    for n in 0..200 {
        let names = (0..100).map(|i| format!("e{n}-{i}"));
        assert_eq!(leader.claim(names, 1), 100);
    }
    let other = One::joined(&shared, "other", 2);
    assert_eq!(other.claim(["mine".to_owned()].into_iter(), 1), 1);
    let before = other.register.counts().0;
    ready(other.store.leave(&ns(), &other.me)).unwrap();
    let made = other.register.counts().0 - before;
    assert!(made <= 8, "{made} requests to leave");
    let again = One::joined(&shared, "other", 3);
    assert!(again.register.counts().0 <= 8, "{:?} to join", again.register.counts());
}
