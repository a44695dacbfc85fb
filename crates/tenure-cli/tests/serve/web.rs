//! Clients of a server: one that asks, and one that has a session.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{LIMIT, Running, World, wait_for};

/// A server that was started.
pub(crate) struct Served {
    pub(crate) process: Running,
    /// What it printed.
    pub(crate) said: Value,
    pub(crate) web: Web,
}

/// Starts one on the world's store, on a free port, and waits until it says where.
pub(crate) fn serve(world: &World, id: &str, args: &[&str]) -> Served {
    let mut line = vec!["--json", "serve", "--id", id, "--listen", "127.0.0.1:0"];
    line.extend(args);
    served(world.background(id, &line))
}

pub(crate) fn served(process: Running) -> Served {
    let said = wait_for("where it serves", || {
        let printed = process.printed();
        printed.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())
    });
    let at = said["addresses"][0].as_str().unwrap().trim_start_matches("http://").to_owned();
    Served { process, web: Web::at(at), said }
}

trait Stream: std::io::Read + std::io::Write {}
impl<T: std::io::Read + std::io::Write> Stream for T {}

/// Asks one server, over a connection of its own for each request.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    at: At,
    token: Option<String>,
}

#[derive(Clone, Debug)]
enum At {
    Tcp(String),
    Unix(PathBuf),
}

impl Web {
    pub(crate) fn at(address: String) -> Self {
        Self { at: At::Tcp(address), token: None }
    }

    pub(crate) fn on(socket: PathBuf) -> Self {
        Self { at: At::Unix(socket), token: None }
    }

    pub(crate) fn bearer(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn address(&self) -> &str {
        match &self.at {
            At::Tcp(address) => address,
            At::Unix(path) => path.to_str().unwrap(),
        }
    }

    fn connect(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match &self.at {
            At::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(LIMIT))?;
                Box::new(stream)
            }
            At::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(LIMIT))?;
                Box::new(stream)
            }
        })
    }

    /// Status and body; an error if there is no whole answer.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        let mut stream = self.connect()?;
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             {}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}",
            token.unwrap_or_default()
        );
        stream.write_all(head.as_bytes())?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let cut = || std::io::Error::new(std::io::ErrorKind::UnexpectedEof, said.clone());
        let (head, body) = said.split_once("\r\n\r\n").ok_or_else(cut)?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok((status.ok_or_else(cut)?, body.to_owned()))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "").unwrap()
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{status} {body}: {error}"))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> std::io::Result<(u16, Value)> {
        let (status, said) = self.ask("POST", path, &body.to_string())?;
        Ok((status, serde_json::from_str(&said).unwrap_or(Value::Null)))
    }
}

/// A client with a session: it trusts by rule W1.
pub(crate) struct Session {
    web: Web,
    pub(crate) told: Value,
    /// Until when it trusts, by the newest answer that said so.
    pub(crate) trusted_until: Option<Instant>,
}

impl Session {
    pub(crate) fn begin(web: &Web, election: &str, body: &Value) -> Self {
        let path = format!("/v1/elections/{election}/sessions");
        let sent = Instant::now();
        let (status, told) = web.post(&path, body).unwrap();
        assert_eq!(status, 201, "{told}");
        let mut session = Self { web: web.clone(), told: Value::Null, trusted_until: None };
        session.hear(sent, told);
        session
    }

    fn hear(&mut self, sent: Instant, told: Value) {
        let millis = |key: &str| told[key].as_u64().unwrap_or_default();
        let span = millis("remaining_ms").min(millis("ttl_ms"));
        let leads = matches!(told["state"].as_str(), Some("leading" | "stopping")) && span > 0;
        self.trusted_until = leads.then(|| sent + Duration::from_millis(span));
        self.told = told;
    }

    /// Another connection of the same client, which trusts nothing yet.
    pub(crate) fn again(&self) -> Self {
        Self { web: self.web.clone(), told: self.told.clone(), trusted_until: None }
    }

    pub(crate) fn state(&self) -> &str {
        self.told["state"].as_str().unwrap_or("unknown")
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", self.told["session"].as_str().unwrap())
    }

    /// An error leaves what is trusted as it is: it ends by itself.
    pub(crate) fn beat(&mut self, wait_ms: u64) -> std::io::Result<()> {
        let body = json!({ "seen": self.told["seen"], "wait_ms": wait_ms });
        let sent = Instant::now();
        let (status, told) = self.web.post(&self.path("/beat"), &body)?;
        assert_eq!(status, 200, "{told}");
        self.hear(sent, told);
        Ok(())
    }

    pub(crate) fn until(&mut self, state: &str) {
        wait_for(state, || {
            if self.state() != state {
                self.beat(300).unwrap();
            }
            (self.state() == state).then_some(())
        });
    }
}
