//! The suite on the memory store, by hand-moved time.

use std::sync::Arc;

use tenure_conformance::ManualHarness;
use tenure_store::{ManualClock, MemoryStore};

fn memory() -> ManualHarness {
    let clock = Arc::new(ManualClock::new());
    let store = MemoryStore::keeping(clock.clone(), 200);
    ManualHarness::new(clock, move || store.clone().shared()).keeping(200)
}

tenure_conformance::suite!(memory());
