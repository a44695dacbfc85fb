//! The whole suite, on real files: every case has a database of its own, and
//! every handle its own connections, as one more process would.

use std::sync::Arc;

use tenure_conformance::ManualHarness;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::ManualClock;

/// Few enough that the case which overruns the journal is quick.
const KEPT: usize = 200;

fn sqlite() -> ManualHarness {
    let dir = tempfile::tempdir().expect("a directory for the database");
    let clock = Arc::new(ManualClock::new());
    let options = SqliteOptions::new().clock(clock.clone()).journal_keep(KEPT as u64);
    let open = move || {
        let path = dir.path().join("tenure.db");
        let store = SqliteStore::open_blocking(path, options.clone());
        store.expect("the database opens").shared()
    };
    ManualHarness::new(clock, open).keeping(KEPT)
}

tenure_conformance::suite!(sqlite());
