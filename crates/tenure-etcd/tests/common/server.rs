//! A server of a test's own, for what would disturb others: users, a small quota, a restore.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use tenure_testkit::until;

/// A cluster of one member, gone with the value.
#[derive(Debug)]
pub struct Etcd {
    folder: PathBuf,
    ports: (u16, u16),
    options: Vec<String>,
    child: Option<Child>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Etcd {
    pub async fn start(options: &[&str]) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let folder = std::env::temp_dir().join(format!("tenure-etcd-{}-{now}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut etcd = Self { folder, ports: (free_port(), free_port()), options, child: None };
        etcd.start_again().await;
        etcd
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.0)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub async fn start_again(&mut self) {
        let clients = format!("http://127.0.0.1:{}", self.ports.0);
        let peers = format!("http://127.0.0.1:{}", self.ports.1);
        let mut command = Command::new("etcd");
        command
            .arg("--data-dir")
            .arg(self.data())
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("default={peers}")])
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        self.child = Some(command.spawn().unwrap());
        until("etcd to serve", async || is_healthy(self.ports.0).await).await;
    }

    pub async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().await.unwrap();
        }
    }

    /// A copy of all it keeps, made while it is stopped.
    pub fn copy_data(&self) -> PathBuf {
        let copy = self.folder.join("copy");
        copy_folder(&self.data(), &copy);
        copy
    }

    pub fn put_back(&self, copy: PathBuf) {
        std::fs::remove_dir_all(self.data()).unwrap();
        std::fs::rename(copy, self.data()).unwrap();
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.start_kill();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

async fn is_healthy(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        let request = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await.ok()?;
        Some(said.contains("\"health\":\"true\""))
    };
    ask.await.unwrap_or(false)
}

/// Runs etcd's own tool, and gives what it says.
pub async fn etcdctl(address: &str, line: &str) -> String {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", address])
        .args(line.split(' '))
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "etcdctl {line}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
