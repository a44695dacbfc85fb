//! A connection that can be held up: what an outage looks like to a client.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Passes bytes between its clients and a server, unless it is held.
pub struct Proxy {
    address: SocketAddr,
    held: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of the server that `url` names; gives the URL that goes through
    /// the proxy.
    pub fn before(url: &str) -> (Self, String) {
        let (head, rest) = url.split_once('@').expect("the URL names a user and a host");
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (server, tail) = rest.split_at(end);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let held = Arc::new(AtomicBool::new(false));
        let (server, flag) = (server.to_owned(), held.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                join(&client, &upstream, &flag);
                join(&upstream, &client, &flag);
            }
        });
        let through = format!("{head}@{address}{tail}");
        (Self { address, held }, through)
    }

    /// Nothing passes until [`Proxy::release`]; nothing is lost either.
    pub fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    pub fn release(&self) {
        self.held.store(false, Ordering::SeqCst);
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn join(from: &TcpStream, to: &TcpStream, held: &Arc<AtomicBool>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let held = held.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count) = from.read(&mut bytes) {
            while held.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if count == 0 || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
