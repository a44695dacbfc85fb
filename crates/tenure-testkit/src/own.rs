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
