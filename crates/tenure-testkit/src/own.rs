//! What belongs to one test alone: names, ports and stamps that no other test uses.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_store::BootClock;

/// Nanoseconds on the clock that trust is measured on, which all processes of a machine
/// share.
#[must_use]
pub fn stamp() -> u64 {
    BootClock::read().as_nanos()
}

/// A name that no other test uses, in this run or in an earlier one: process ids come
/// again, and a process that was killed may have left something under its name.
/// It consists of letters, digits and `_`.
#[must_use]
pub fn fresh_name(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{}_{count}_{:x}", std::process::id(), stamp())
}

/// A port of this machine on which nothing listens.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("the port of a listener").port()
}

/// Says that this machine lacks what a test needs: a right, a kernel's facility. The test
/// then tests nothing, which a person may accept on a laptop. With `CI` in the environment,
/// as `.ci/run` sets it, it fails: a rule that no test has tried there would look proven.
///
/// # Panics
///
/// If the variable `CI` is set.
#[allow(clippy::print_stderr)]
pub fn cannot_test_here(what_lacks: &str) {
    let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    assert!(
        !ci,
        "{what_lacks}, and so this test can test nothing; CI is set, and CI skips no test: run \
         it where that can be had, or without CI in the environment"
    );
    eprintln!("{what_lacks}: nothing was tested");
}
