//! A server, and a client that holds every answer against the OpenAPI document.

#![allow(dead_code)]

pub(crate) mod schema;
pub(crate) mod session;

use std::time::Duration;

use serde_json::Value;
use tenure::{Builder, Tenure};
use tenure_server::{Address, Options, Server};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

pub(crate) const TTL: Duration = Duration::from_millis(1_500);

/// A member on a store of its own.
pub(crate) fn member(id: &str) -> Builder {
    Tenure::builder(format!("memory:{}", tenure_testkit::fresh_name("server"))).id(id).ttl(TTL)
}

/// A server on a store of its own, with the options.
pub(crate) async fn serve(options: Options) -> (Server, Client) {
    let server = Server::start(member("server"), options).await.unwrap();
    let client = Client::of(&server);
    (server, client)
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// It is a problem of this kind, with a remedy unless it needs none.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{self:?}");
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        problem
    }
}

/// What asks the server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    address: Address,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether its system keeps little of what it has not read.
    is_narrow: bool,
}

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        Self::at(&server.addresses()[0])
    }

    pub(crate) fn at(address: &Address) -> Self {
        Self { address: address.clone(), headers: Vec::new(), is_narrow: false }
    }

    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.into(), value.into()));
        client
    }

    pub(crate) fn narrow(&self) -> Self {
        Self { is_narrow: true, ..self.clone() }
    }

    pub(crate) fn bearer(&self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) async fn connect(&self) -> Box<dyn Stream> {
        match &self.address {
            Address::Tcp { at, .. } if self.is_narrow => {
                let socket = TcpSocket::new_v4().unwrap();
                socket.set_recv_buffer_size(4 * 1024).unwrap();
                Box::new(socket.connect(*at).await.unwrap())
            }
            Address::Tcp { at, .. } => Box::new(TcpStream::connect(at).await.unwrap()),
            Address::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
            other => panic!("no address to connect to: {other:?}"),
        }
    }

    fn request(&self, method: &str, path: &str, body: Option<&str>, close: bool) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        let has = |name: &str| self.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        if !has("host") {
            text.push_str("Host: localhost\r\n");
        }
        if body.is_some() && !has("content-type") {
            text.push_str("Content-Type: application/json\r\n");
        }
        if close {
            text.push_str("Connection: close\r\n");
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = body.unwrap_or_default();
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        text
    }

    /// Asks, and holds the answer against the document.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let answer = self.send(method, path, body).await;
        schema::check(method, path, &answer);
        answer
    }

    /// Asks what is not in the document.
    pub(crate) async fn raw(&self, method: &str, path: &str) -> Answer {
        self.send(method, path, None).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(self.request(method, path, body, true).as_bytes()).await.unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.unwrap();
        parse(&text)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, Some(&body.to_string())).await
    }

    /// Follows events from now on, or after the one of this id.
    pub(crate) async fn events(&self, path: &str, last: Option<u64>) -> Events {
        let client = match last {
            Some(id) => self.with("Last-Event-ID", &id.to_string()),
            None => self.clone(),
        };
        let mut stream = client.connect().await;
        stream.write_all(client.request("GET", path, None, false).as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).await.unwrap();
        }
        Events { lines }
    }
}

fn parse(text: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(key, value)| (key.to_lowercase(), value.into())).collect();
    Answer { status, headers, body: body.to_owned() }
}

/// A connection of any kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Server-sent events as they arrive.
pub(crate) struct Events {
    lines: BufReader<Box<dyn Stream>>,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

impl Events {
    /// The next event; `None` when the server has closed.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).await.unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("event", name)) => event.name = name.into(),
                Some(("id", id)) => event.id = id.parse().ok(),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                _ if event.data != Value::Null => return Some(event),
                // Lengths of chunks, comments, blanks.
                _ => {}
            }
        }
    }

    /// The next entry of the journal.
    pub(crate) async fn entry(&mut self) -> Event {
        loop {
            let event = tenure_testkit::within(self.next()).await.expect("the events have ended");
            if event.name.is_empty() {
                return event;
            }
        }
    }
}
