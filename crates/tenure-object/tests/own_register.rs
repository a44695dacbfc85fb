//! The whole suite on the register of the example `own_register`.

mod common;
#[path = "../examples/own_register/register.rs"]
mod register;
#[path = "../examples/own_register/server.rs"]
mod server;

use std::sync::Arc;
use std::time::Duration;

use register::HttpRegister;
use tenure_cas::{CasOptions, CasStore};
use tenure_conformance::ManualHarness;
use tenure_store::{ManualClock, SharedStore};

async fn own() -> ManualHarness {
    let base = format!("http://{}", server::serve().await.expect("it serves"));
    let clock = Arc::new(ManualClock::new());
    let options = CasOptions {
        poll: Duration::from_millis(5),
        poll_held: Some(Duration::ZERO),
        listing_age: Duration::ZERO,
        ..CasOptions::default()
    };
    let observed = clock.clone();
    ManualHarness::new(clock, move || -> SharedStore {
        let register = HttpRegister { client: common::plain(), base: base.clone() };
        let store = CasStore::new(Arc::new(register), observed.clone(), options.clone());
        Arc::new(store.expect("the options are good"))
    })
}

tenure_conformance::suite!(own().await);
