//! A way to the server on which notifications can get lost, and nothing else.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// The type of a message from the server that carries a notification.
const NOTIFICATION: u8 = b'A';

/// Listens on a port of its own, for as long as the test's runtime.
pub struct Relay {
    pub port: u16,
    loses: Arc<AtomicBool>,
}

impl Relay {
    /// To the server at this URL, which is on this host and speaks without TLS.
    pub async fn start(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let to = config.get_ports()[0];
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let loses = Arc::new(AtomicBool::new(false));
        let relay = Self { port, loses: Arc::clone(&loses) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await else {
                    continue;
                };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server));
                tokio::spawn(sift(from_server, to_client, Arc::clone(&loses)));
            }
        });
        relay
    }

    /// Whether notifications get lost from now on.
    pub fn lose(&self, lose: bool) {
        self.loses.store(lose, Ordering::Release);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    drop(tokio::io::copy(&mut from, &mut to).await);
}

/// Message by message: a letter, four bytes of length that count themselves, the rest.
async fn sift(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, loses: Arc<AtomicBool>) {
    loop {
        let mut head = [0; 5];
        if from.read_exact(&mut head).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut message = head.to_vec();
        message.resize(length + 1, 0);
        if from.read_exact(&mut message[5..]).await.is_err() {
            return;
        }
        let lost = message[0] == NOTIFICATION && loses.load(Ordering::Acquire);
        if !lost && to.write_all(&message).await.is_err() {
            return;
        }
    }
}
