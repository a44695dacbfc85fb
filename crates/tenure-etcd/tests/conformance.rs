//! The whole suite on a real server: every case has a prefix of its own, and every handle its
//! own connections, as one more process would.

mod common;

tenure_conformance::suite!(common::Place::new());
