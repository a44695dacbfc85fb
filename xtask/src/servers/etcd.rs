//! etcd, beside which names are measured, and on which the store for it is tested.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::ports::free_port;
use super::{Running, Scratch, Server, install, postgres_programs};
use crate::failure::{Failure, Outcome};

/// From start to the first answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Another process may take a port between our looking and the server's start.
const ATTEMPTS: u32 = 3;

/// A cluster of one member, of the version that the system has.
pub(crate) struct Etcd;

impl Server for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn variable(&self) -> &'static str {
        "TENURE_TEST_ETCD_URL"
    }

    fn provide(&self) -> Outcome {
        if is_here() { Ok(()) } else { install(&["etcd-server", "etcd-client"]) }
    }

    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        let mut last = Failure::new("it was not tried");
        for attempt in 0..ATTEMPTS {
            match run(attempt, scratch) {
                Ok(running) => return Ok(running),
                Err(failure) => last = failure,
            }
        }
        Err(Failure::new(format!("etcd did not start in {ATTEMPTS} attempts: {last}")))
    }
}

fn run(attempt: u32, scratch: &Scratch) -> Outcome<Running> {
    let clients = free_port()?;
    let peers = free_port()?;
    let clients_at = format!("http://127.0.0.1:{clients}");
    let peers_at = format!("http://127.0.0.1:{peers}");
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(scratch.path().join(format!("data-{attempt}")))
        .args(["--listen-client-urls", &clients_at, "--advertise-client-urls", &clients_at])
        .args(["--listen-peer-urls", &peers_at, "--initial-advertise-peer-urls", &peers_at])
        .args(["--initial-cluster", &format!("default={peers_at}")]);
    let running = Running::spawn(command, &scratch.path().join("log"))?;
    let mut running =
        running.with_environment("TENURE_TEST_ETCD_URL", &format!("127.0.0.1:{clients}"));
    running.wait_until(PATIENCE, || is_healthy(clients))?;
    Ok(running)
}

/// Whether it has elected itself and serves.
fn is_healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream
            .write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut said = String::new();
        stream.take(4_096).read_to_string(&mut said)?;
        Ok(said)
    };
    ask().is_ok_and(|said| said.contains("\"health\":\"true\""))
}

/// Makes sure that etcd is there; a benchmark finds it on the path.
pub(crate) fn own() -> Outcome<Vec<(String, String)>> {
    Etcd.provide().map(|()| Vec::new())
}

/// Finds PostgreSQL's programs, and installs etcd if it can be had: without it the benchmark
/// says which lines it does not measure.
pub(crate) fn programs() -> Outcome<Vec<(String, String)>> {
    let found = postgres_programs()?;
    if !is_here()
        && let Err(failure) = install(&["etcd-server", "etcd-client"])
    {
        println!("    without etcd: {failure}");
    }
    Ok(found)
}

/// Whether the server and its tool are on the path.
fn is_here() -> bool {
    [("etcd", "--version"), ("etcdctl", "version")].into_iter().all(|(program, version)| {
        let mut asked = Command::new(program);
        asked.arg(version).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    })
}
