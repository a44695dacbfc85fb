//! Clients that do no more than they must: their work is part of what is measured.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::Outcome;

/// One connection, over which the same question is asked again and again.
pub(crate) struct Line {
    stream: TcpStream,
    question: Vec<u8>,
    buffer: Vec<u8>,
}

impl Line {
    pub(crate) async fn open(at: &str, path: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        let question = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
        Ok(Self { stream, question, buffer: vec![0; 16 * 1024] })
    }

    /// Asks; the status of the answer, which arrives in one piece.
    pub(crate) async fn ask(&mut self) -> Outcome<u16> {
        self.stream.write_all(&self.question).await?;
        let read = self.stream.read(&mut self.buffer).await?;
        let status = self.buffer.get(9..12).filter(|_| read > 12).ok_or("no answer")?;
        Ok(std::str::from_utf8(status)?.parse()?)
    }
}

/// A client of events.
pub(crate) struct Follower {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What came with the head of the answer.
    first: Vec<u8>,
}

/// What the entry of a term that was won has in it, and no other.
const ELECTED: &[u8] = b"\"event\":\"elected\"";

impl Follower {
    /// Follows from now on, or after a place.
    pub(crate) async fn open(at: &str, after: Option<u64>) -> Outcome<Self> {
        let stream = TcpStream::connect(at).await?;
        let mut follower = Self { stream, buffer: vec![0; 8 * 1024], first: Vec::new() };
        follower.ask(after).await?;
        // The head of the answer, and the first event.
        let mut heard = Vec::new();
        while !heard.windows(5).any(|part| part == b"hello") {
            heard.extend_from_slice(follower.read().await?);
        }
        follower.first = heard;
        Ok(follower)
    }

    /// One that asks for everything, has room for little of it, and never reads.
    pub(crate) async fn stopped(at: &str) -> Outcome<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4 * 1024)?;
        let stream = socket.connect(at.parse()?).await?;
        let mut follower = Self { stream, buffer: Vec::new(), first: Vec::new() };
        follower.ask(Some(0)).await?;
        Ok(follower)
    }

    async fn ask(&mut self, after: Option<u64>) -> Outcome {
        let last = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{last}\r\n");
        Ok(self.stream.write_all(head.as_bytes()).await?)
    }

    async fn read(&mut self) -> Outcome<&[u8]> {
        let read = self.stream.read(&mut self.buffer).await?;
        if read == 0 {
            return Err("the events have ended".into());
        }
        Ok(&self.buffer[..read])
    }

    /// Returns when a term was won.
    pub(crate) async fn elected(&mut self) -> Outcome {
        loop {
            let heard = self.read().await?;
            if heard.windows(ELECTED.len()).any(|part| part == ELECTED) {
                return Ok(());
            }
        }
    }

    /// The places of the entries that arrive after `last`, until there are so many.
    pub(crate) async fn places(&mut self, last: u64, count: usize) -> Outcome<Vec<u64>> {
        let mut text = String::from_utf8_lossy(&self.first).into_owned();
        loop {
            let ids = text.split("id: ").skip(1).filter(|rest| rest.contains("}\n\n"));
            let ids = ids.filter_map(|rest| rest.split('\n').next()?.parse().ok());
            let ids: Vec<u64> = ids.filter(|id| *id != last).collect();
            if ids.len() >= count {
                return Ok(ids);
            }
            text.push_str(&String::from_utf8_lossy(self.read().await?));
        }
    }
}

/// For a crowd to settle after something happened.
pub(crate) async fn rest() {
    tokio::time::sleep(Duration::from_millis(60)).await;
}
