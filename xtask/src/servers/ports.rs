//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};

use crate::failure::{Doing, Failure, Outcome};

/// A port that no process uses now.
pub(crate) fn free_port() -> Outcome<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .doing(|| "find a free port on 127.0.0.1".into())
}

/// The first of `count` free ports in a row, all below `limit`, for a server
/// that makes other ports of them by adding to them.
pub(crate) fn free_ports_below(count: u16, limit: u16) -> Outcome<u16> {
    let above = 10_000;
    // Not where other programs begin to look.
    let offset = u16::try_from(std::process::id() % 1_000).unwrap_or(0) * 8;
    let from = above + offset;
    (from..limit - count)
        .step_by(usize::from(count))
        .find(|first| (*first..first + count).all(|port| free(port) && free(port + above)))
        .ok_or_else(|| Failure::new(format!("no {count} free ports in a row on 127.0.0.1")))
}

fn free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A taken port is passed over, also where it is one of those above.
    #[test]
    fn ports_in_a_row_are_all_free() {
        let first = free_ports_below(4, 50_000).unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 10_002)).unwrap();
        let next = free_ports_below(4, 50_000).unwrap();
        assert!(next != first && next + 4 < 50_000);
    }
}
