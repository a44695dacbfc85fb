//! What etcd tells by itself: a stream for each prefix, from the present on.
//!
//! A stream begins with the word that its watch is there: from that revision on everything is
//! told. When all streams have said so, and only then, [`Change::Lost`] is given. If one of them
//! ends, whatever the reason (a node that died, a history that was compacted, a token that ran
//! out), that is an error, all of them are begun anew, and `Lost` comes again. Nothing is asked
//! for from an older revision on: what was missed is looked at, which holds after any compaction
//! too.
//!
//! One stream could carry several watches. Over HTTP/1 the server may close a request's body as
//! soon as it answers the first of them, and the others are never there (seen with bodies of
//! more than 512 bytes); so each has its own.
//!
//! Tasks read the streams, so that a caller who stops waiting loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Response;
use tenure_cas::{Change, Version, Watching};
use tenure_store::{Error, ErrorKind, Result};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use crate::messages::{Event, Line, Watched, bytes, key, watches};
use crate::wire::Wire;

/// How many changes may wait for the caller; the service waits with the rest.
const WAITING: usize = 1_024;

/// A watch of some prefixes.
#[derive(Debug)]
pub(crate) struct EtcdWatch {
    wire: Arc<Wire>,
    prefixes: Vec<String>,
    stream: Option<Stream>,
}

/// Streams that are read.
#[derive(Debug)]
struct Stream {
    changes: Receiver<Result<Change>>,
    /// Whether all of them have begun.
    began: bool,
    /// They end with the value.
    _tasks: JoinSet<()>,
}

impl EtcdWatch {
    pub(crate) fn new(wire: Arc<Wire>, prefixes: Vec<String>) -> Self {
        Self { wire, prefixes, stream: None }
    }

    fn begin(&self) -> Stream {
        let (told, changes) = channel(WAITING);
        let missing = Arc::new(AtomicUsize::new(self.prefixes.len()));
        let mut tasks = JoinSet::new();
        for prefix in &self.prefixes {
            let begins = Begins { missing: missing.clone(), told: told.clone() };
            tasks.spawn(read(self.wire.clone(), prefix.clone(), begins));
        }
        Stream { changes, began: false, _tasks: tasks }
    }
}

/// Where a stream says what it reads.
#[derive(Debug)]
struct Begins {
    /// How many streams have not begun yet.
    missing: Arc<AtomicUsize>,
    told: Sender<Result<Change>>,
}

impl Begins {
    /// Whether there is still a caller to tell.
    async fn tell(&self, change: Result<Change>) -> bool {
        self.told.send(change).await.is_ok()
    }

    /// One stream has begun; the last one says so for all.
    async fn began(&self) -> bool {
        let last = self.missing.fetch_sub(1, Ordering::AcqRel) == 1;
        !last || self.tell(Ok(Change::Lost)).await
    }
}

#[async_trait]
impl Watching for EtcdWatch {
    async fn next(&mut self) -> Result<Change> {
        if self.stream.is_none() {
            self.stream = Some(self.begin());
        }
        let Some(stream) = &mut self.stream else { return Err(ended("")) };
        loop {
            let next = stream.changes.recv().await.unwrap_or_else(|| Err(ended("")));
            match &next {
                Err(_) => self.stream = None,
                Ok(Change::Lost) => stream.began = true,
                // Of one stream, before all had begun: it is looked at after that.
                Ok(_) if !stream.began => continue,
                Ok(_) => {}
            }
            return next;
        }
    }
}

/// Reads one stream to its end.
async fn read(wire: Arc<Wire>, prefix: String, begins: Begins) {
    if let Err(error) = follow(&wire, &prefix, &begins).await {
        begins.tell(Err(error)).await;
    }
}

async fn follow(wire: &Wire, prefix: &str, begins: &Begins) -> Result<()> {
    let (endpoint, mut response) = wire.stream("/v3/watch", watches(prefix)).await?;
    let mut text = Vec::new();
    let mut began = false;
    loop {
        let chunk = if began {
            next_chunk(&mut response).await
        } else {
            // A node that lost its leader takes the request and says nothing.
            let wait = wire.timeout().max(Duration::from_millis(100));
            let chunk = tokio::time::timeout(wait, next_chunk(&mut response)).await;
            chunk.unwrap_or_else(|_| Err(ended("it did not begin")))
        };
        let chunk = chunk.inspect_err(|_| wire.skip(&endpoint))?;
        text.extend_from_slice(&chunk);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let watched = said(&line).inspect_err(|_| wire.skip(&endpoint))?;
            // A stream has no request of ours before it whose revision it must have reached.
            wire.check(watched.header, 0)?;
            if watched.created && !std::mem::replace(&mut began, true) && !begins.began().await {
                return Ok(());
            }
            for change in watched.events.iter().filter_map(change) {
                if !begins.tell(Ok(change)).await {
                    return Ok(());
                }
            }
        }
    }
}

async fn next_chunk(response: &mut Response) -> Result<Vec<u8>> {
    match response.chunk().await {
        Ok(Some(chunk)) => Ok(chunk.to_vec()),
        Ok(None) => Err(ended("the server closed it")),
        Err(error) => Err(ended("the connection broke").caused_by(error.without_url())),
    }
}

/// What a line tells; an error if it is the end of the watch.
fn said(line: &[u8]) -> Result<Watched> {
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        Error::new(ErrorKind::Foreign, "a line of the watch is none of etcd's").caused_by(error)
    })?;
    match line.result {
        Some(watched) if watched.canceled => Err(ended(&watched.cancel_reason)),
        Some(watched) => Ok(watched),
        None => {
            let why = line.error.map(|error| error.to_string());
            Err(ended(why.as_deref().unwrap_or_default()))
        }
    }
}

/// A change, if it is of a key that could be ours.
fn change(event: &Event) -> Option<Change> {
    let key = key(&event.kv.key)?;
    if event.kind == "DELETE" {
        return Some(Change::Gone { key });
    }
    let version = Version::from(event.kv.mod_revision);
    Some(Change::Put { key, version, bytes: bytes(&event.kv.value) })
}

fn ended(why: &str) -> Error {
    let why: String = why.chars().take(300).collect();
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    Error::new(ErrorKind::Unreachable, format!("the watch of etcd ended{why}"))
        .remedy("nothing: it is begun anew")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_ends_the_stream_and_says_so() {
        let line = br#"{"result":{"canceled":true,"compact_revision":"9","cancel_reason":"mvcc: required revision has been compacted"}}"#;
        let error = said(line).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("compacted"), "{error}");
    }

    #[test]
    fn what_is_no_line_of_etcd_ends_the_stream() {
        assert_eq!(said(b"<html>").unwrap_err().kind(), ErrorKind::Foreign);
        assert!(said(br#"{"error":{"grpc_code":14}}"#).unwrap_err().to_string().contains("14"));
    }
}
