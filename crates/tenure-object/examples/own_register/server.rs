//! The service: a map behind HTTP, whose entity tags are the numbers of writes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Map {
    writes: u64,
    cells: BTreeMap<String, (u64, Vec<u8>)>,
}

/// Serves on a free port of loopback until the process ends.
pub(crate) async fn serve() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let map = Arc::new(Mutex::new(Map::default()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream, map.clone()));
        }
    });
    Ok(address)
}

/// One connection, request by request.
async fn talk(stream: TcpStream, map: Arc<Mutex<Map>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            let fields = head.iter().skip(1).filter_map(|line| line.split_once(':'));
            let mut found = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.trim().to_owned())
        };
        let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let line = head.first().cloned().unwrap_or_default();
        let answer = {
            let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
            map.answer(&line, header("if-match"), header("if-none-match"), body)
        };
        stream.write_all(&answer).await?;
    }
}

impl Map {
    fn answer(
        &mut self,
        line: &str,
        expect: Option<String>,
        unless: Option<String>,
        body: Vec<u8>,
    ) -> Vec<u8> {
        let mut words = line.split(' ');
        let method = words.next().unwrap_or("");
        let path = words.next().unwrap_or("");
        if let Some(prefix) = path.strip_prefix("/?prefix=") {
            let keys = self.cells.keys().filter(|key| key.starts_with(prefix));
            let text = keys.map(|key| format!("{key}\n")).collect::<String>();
            return said("200 OK", "", text.as_bytes());
        }
        let key = path.trim_start_matches('/');
        let tag = self.cells.get(key).map(|(number, _)| format!("\"{number}\""));
        // Judged and done in one step, under one lock: that is all it takes.
        let refused = match (&expect, &unless) {
            (Some(expected), _) => tag.is_some() && tag.as_ref() != Some(expected),
            (None, Some(any)) => method == "PUT" && any == "*" && tag.is_some(),
            (None, None) => false,
        };
        let replaces_nothing = method == "PUT" && expect.is_some() && tag.is_none();
        if refused || replaces_nothing {
            return said("412 Precondition Failed", "", b"");
        }
        match (method, self.cells.get(key)) {
            ("PUT", _) => {
                self.writes += 1;
                self.cells.insert(key.to_owned(), (self.writes, body));
                said("200 OK", &format!("etag: \"{}\"\r\n", self.writes), b"")
            }
            (_, None) => said("404 Not Found", "", b""),
            ("GET", Some(_)) if unless == tag => said("304 Not Modified", "", b""),
            ("GET", Some((number, bytes))) => {
                said("200 OK", &format!("etag: \"{number}\"\r\n"), bytes)
            }
            ("DELETE", Some(_)) => {
                self.cells.remove(key);
                said("204 No Content", "", b"")
            }
            _ => said("405 Method Not Allowed", "", b""),
        }
    }
}

fn said(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = match status.split(' ').next() {
        Some("204" | "304") => String::new(),
        _ => format!("content-length: {}\r\n", body.len()),
    };
    let mut answer = format!("HTTP/1.1 {status}\r\n{headers}{length}\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}
