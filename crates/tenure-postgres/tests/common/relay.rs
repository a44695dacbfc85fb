//! A way to the server on which notifications can get lost, and nothing else.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_testkit::Proxy;
use tenure_testkit::proxy::Sieve;

/// The type of a message from the server that carries a notification.
const NOTIFICATION: u8 = b'A';

/// Listens on a port of its own, for as long as it is kept.
pub struct Relay {
    pub proxy: Proxy,
    loses: Arc<AtomicBool>,
}

impl Relay {
    /// To the server at this URL, which is on this host and speaks without TLS.
    pub fn start(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let server = (Ipv4Addr::LOCALHOST, config.get_ports()[0]);
        let loses = Arc::new(AtomicBool::new(false));
        let kept = Arc::clone(&loses);
        let proxy = Proxy::sifting(server, move || sieve(Arc::clone(&kept))).unwrap();
        Self { proxy, loses }
    }

    /// Whether notifications get lost from now on.
    pub fn lose(&self, lose: bool) {
        self.loses.store(lose, Ordering::Release);
    }
}

/// Message by message: a letter, four bytes of length that count themselves, the rest.
fn sieve(loses: Arc<AtomicBool>) -> Sieve {
    let mut waiting = Vec::new();
    Box::new(move |bytes| {
        waiting.extend_from_slice(bytes);
        let mut passed = Vec::new();
        while let [kind, a, b, c, d, ..] = waiting[..] {
            let length = 1 + u32::from_be_bytes([a, b, c, d]) as usize;
            if waiting.len() < length {
                break;
            }
            let message = waiting.drain(..length);
            if kind != NOTIFICATION || !loses.load(Ordering::Acquire) {
                passed.extend(message);
            }
        }
        passed
    })
}
