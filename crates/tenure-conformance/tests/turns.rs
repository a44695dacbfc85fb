//! The suite on the rules over a copy of some rows: look, decide, take a turn under guards.

use std::sync::Arc;

use tenure_conformance::ManualHarness;
use tenure_store::{ManualClock, MemoryRows, TurnStore};

fn turns() -> ManualHarness {
    let clock = Arc::new(ManualClock::new());
    let rows = Arc::new(MemoryRows::new(clock.clone(), 200));
    ManualHarness::new(clock, move || TurnStore::new(rows.clone()).shared()).keeping(200)
}

tenure_conformance::suite!(turns());
