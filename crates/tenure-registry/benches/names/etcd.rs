//! The peer: etcd's put-if-absent through its JSON gateway over plain HTTP.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::{Outcome, words};

/// A private etcd of one node, durable as it comes; gone when this is.
pub(crate) struct Etcd {
    child: Child,
    port: u16,
    pub(crate) version: String,
    _dir: TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Etcd {
    /// Or why there is none.
    pub(crate) async fn start() -> Result<Self, String> {
        let said = Command::new("etcd").arg("--version").output();
        let said = said.map_err(|error| format!("etcd cannot be run: {error}"))?;
        let said = String::from_utf8_lossy(&said.stdout);
        let version = said.lines().next().unwrap_or_default().to_owned();
        Self::run(version).await.map_err(|error| error.to_string())
    }

    async fn run(version: String) -> Outcome<Self> {
        let dir = tempfile::Builder::new().prefix("tenure-bench-").tempdir()?;
        let port = free_port()?;
        let peers = free_port()?;
        let [client, peer] = [port, peers].map(|port| format!("http://127.0.0.1:{port}"));
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let etcd = Self { child, port, version, _dir: dir };
        for _ in 0..500 {
            if let Ok(mut caller) = etcd.caller().await
                && caller.put_if_absent("first").await.is_ok()
            {
                return Ok(etcd);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err("etcd did not answer within 10 s".into())
    }

    /// A connection of its own.
    pub(crate) async fn caller(&self) -> Outcome<Caller> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Caller { stream: BufReader::new(stream), line: String::new(), body: Vec::new() })
    }
}

/// A client that asks, one request after the other.
pub(crate) struct Caller {
    stream: BufReader<TcpStream>,
    line: String,
    body: Vec<u8>,
}

impl Caller {
    /// Puts a key that must not be there.
    pub(crate) async fn put_if_absent(&mut self, key: &str) -> Outcome {
        let key = base64(key.as_bytes());
        let value = base64(words::ENDPOINT.as_bytes());
        let body = format!(
            "{{\"compare\":[{{\"key\":\"{key}\",\"target\":\"CREATE\",\"result\":\"EQUAL\",\
             \"create_revision\":\"0\"}}],\"success\":[{{\"request_put\":{{\"key\":\"{key}\",\
             \"value\":\"{value}\"}}}}]}}"
        );
        let head = "POST /v3/kv/txn HTTP/1.1\r\nHost: etcd\r\nContent-Length: ";
        let request = format!("{head}{}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        self.answer().await?;
        let said = String::from_utf8_lossy(&self.body);
        if said.contains("\"succeeded\":true") {
            return Ok(());
        }
        Err(format!("etcd answered {said}").into())
    }

    async fn answer(&mut self) -> Outcome {
        let mut length = 0;
        loop {
            self.line.clear();
            if self.stream.read_line(&mut self.line).await? == 0 {
                return Err("etcd closed the connection".into());
            }
            let line = self.line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(bytes) = line.strip_prefix("content-length:") {
                length = bytes.trim().parse()?;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok(())
    }
}

/// Puts so many keys, as many at once as there are callers; the microseconds it took. Each
/// caller takes the next key as soon as it has its answer, so that none is idle before the end.
pub(crate) async fn put_all(callers: &mut Vec<Caller>, prefix: &str, count: usize) -> Outcome<f64> {
    let next = Arc::new(AtomicUsize::new(0));
    let from = Instant::now();
    let mut tasks = Vec::new();
    for mut caller in callers.drain(..) {
        let prefix = prefix.to_owned();
        let next = next.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    break;
                }
                let put = caller.put_if_absent(&format!("{prefix}{n}")).await;
                put.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(caller)
        }));
    }
    let mut back = Vec::new();
    for task in tasks {
        back.push(task.await??);
    }
    let took = words::micros(from);
    *callers = back;
    Ok(took)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
