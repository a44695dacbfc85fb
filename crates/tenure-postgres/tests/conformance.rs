//! The whole suite, on a real server: every case has a schema of its own, and
//! every handle its own connections, as one more process would.

mod common;

use common::Place;
use tenure_conformance::Harness;

fn postgres() -> impl Harness {
    Place::new()
}

tenure_conformance::suite!(postgres());
