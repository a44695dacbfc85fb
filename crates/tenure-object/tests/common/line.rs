//! A line to a real server on which things go wrong: a proxy that passes HTTP
//! requests on, one for each connection, and does to each what it is told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_testkit::{Dice, let_pass};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// It is passed on, and its answer back.
    Pass,
    /// It is answered with this status, and this code in the words of the cloud,
    /// and not passed on.
    Say(u16, &'static str),
    /// It is passed on; then this is answered in place of the server's word.
    PassAndSay(u16, &'static str),
    /// It is passed on, and the connection is closed before the answer.
    CutAfter,
    /// The connection is closed with the request in hand.
    CutBefore,
    /// It is passed on, and never answered.
    Hang,
}

/// Decides what becomes of requests.
pub trait Fate: Send + Sync + 'static {
    /// What becomes of this one, after how long. `line` is its first line.
    fn of(&self, line: &str) -> (Duration, Act);
}

/// Starts a proxy in front of the server at `upstream`; gives where it listens.
pub async fn start(upstream: &str, fate: Arc<impl Fate>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let upstream = upstream.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let fate = fate.clone();
            let upstream = upstream.clone();
            tokio::spawn(async move { carry(stream, &upstream, &*fate).await });
        }
    });
    endpoint
}

/// One request, then the connection is closed.
async fn carry(stream: TcpStream, upstream: &str, fate: &impl Fate) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let (delay, act) = fate.of(head.lines().next().unwrap_or_default());
    let_pass(delay, "a request that is slow").await;
    match act {
        Act::Say(status, code) => return stream.write_all(said(status, code).as_bytes()).await,
        Act::CutBefore => return Ok(()),
        _ => {}
    }
    let mut server = TcpStream::connect(upstream).await?;
    server.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await?;
    server.write_all(&body).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    match act {
        Act::CutAfter => Ok(()),
        Act::Hang => std::future::pending().await,
        Act::PassAndSay(status, code) => stream.write_all(said(status, code).as_bytes()).await,
        _ => stream.write_all(&answer).await,
    }
}

fn said(status: u16, code: &str) -> String {
    let body = match code.strip_prefix("json:") {
        Some(text) => format!(
            r#"{{"error":{{"code":{status},"message":"{text}","errors":[{{"reason":"{text}"}}]}}}}"#
        ),
        None => format!("<Error><Code>{code}</Code><Message>as told</Message></Error>"),
    };
    let length = if status == 304 { 0 } else { body.len() };
    let body = if status == 304 { "" } else { &body };
    format!("HTTP/1.1 {status} told\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// Bad weather: of ten requests three fail, half of those after they were
/// carried out; and of ten, three take two seconds.
#[derive(Debug)]
pub struct BadWeather {
    dice: Mutex<Dice>,
    pub requests: AtomicU64,
    pub failed: AtomicU64,
    /// Whether it has begun.
    pub begun: AtomicBool,
    /// Nothing gets through at all.
    pub cut: AtomicBool,
}

impl BadWeather {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            dice: Mutex::new(Dice::new(seed)),
            requests: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            cut: AtomicBool::new(false),
        })
    }

    fn roll(&self, sides: usize) -> usize {
        self.dice.lock().unwrap().below(sides)
    }
}

impl Fate for BadWeather {
    fn of(&self, _: &str) -> (Duration, Act) {
        if !self.begun.load(Ordering::Relaxed) {
            return (Duration::ZERO, Act::Pass);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let slow = if self.roll(10) < 3 { Duration::from_secs(2) } else { Duration::ZERO };
        let fails = self.roll(10) < 3;
        let how = self.roll(4);
        let act = match how {
            _ if self.cut.load(Ordering::Relaxed) => Act::CutBefore,
            _ if !fails => return (slow, Act::Pass),
            0 => Act::Say(503, "SlowDown"),
            1 => Act::CutBefore,
            2 => Act::PassAndSay(500, "InternalError"),
            _ => Act::CutAfter,
        };
        self.failed.fetch_add(1, Ordering::Relaxed);
        (slow, act)
    }
}
