//! The suite on `CasStore` over the memory register: every handle is an observer
//! of its own, with its own memory of what it saw. Once over a register that has nothing
//! but compare-and-swap, and once over one that tells of changes, has content in its
//! listings and writes several cells at once.

use std::sync::Arc;
use std::time::Duration;

use tenure_cas::{CasOptions, CasStore, MemoryRegister};
use tenure_conformance::ManualHarness;
use tenure_store::{ManualClock, SharedStore};

fn cas(register: MemoryRegister) -> ManualHarness {
    let clock = Arc::new(ManualClock::new());
    let register = Arc::new(register);
    // Looking again and again is timed by the world's clock, so it is quick; and
    // time by hand stands still, so no list is ever new enough to be kept.
    let options = CasOptions {
        poll: Duration::from_millis(5),
        poll_held: Some(Duration::ZERO),
        listing_age: Duration::ZERO,
        ..CasOptions::default()
    };
    let observed = clock.clone();
    ManualHarness::new(clock, move || -> SharedStore {
        let store = CasStore::new(register.clone(), observed.clone(), options.clone());
        Arc::new(store.expect("the options are good"))
    })
}

tenure_conformance::suite!(cas(MemoryRegister::new()));

mod rich {
    use super::*;
    tenure_conformance::suite!(cas(MemoryRegister::rich()));
}
