//! Certificates of a test's own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::server::give_to_server;

/// An authority that signs certificates; gone when this is.
pub struct Authority {
    dir: tempfile::TempDir,
}

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

impl Authority {
    pub fn new() -> Self {
        let authority = Self { dir: tempfile::tempdir().unwrap() };
        authority.openssl(&[
            &["req", "-x509", "-keyout", "ca.key", "-out", "ca.crt", "-days", "2"][..],
            &["-subj", "/CN=An authority", "-addext", "keyUsage=critical,keyCertSign"],
            &KEY,
        ]);
        authority
    }

    /// The root, as `sslrootcert` takes it.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// Puts a certificate for these names into a server's folder.
    pub fn sign(&self, names: &str, into: &Path) {
        self.issue("server", "x", &format!("subjectAltName={names}\n"));
        for file in ["server.key", "server.crt"] {
            std::fs::copy(self.dir.path().join(file), into.join(file)).unwrap();
            give_to_server(&into.join(file));
        }
    }

    /// A certificate by which a role shows who it is, and its key.
    pub fn identity(&self, role: &str) -> (PathBuf, PathBuf) {
        self.issue(role, role, "extendedKeyUsage=clientAuth\n");
        let key = self.dir.path().join(format!("{role}.key"));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        (self.dir.path().join(format!("{role}.crt")), key)
    }

    fn issue(&self, stem: &str, name: &str, extension: &str) {
        std::fs::write(self.dir.path().join("extension"), extension).unwrap();
        let [key, request, signed] = ["key", "csr", "crt"].map(|kind| format!("{stem}.{kind}"));
        self.openssl(&[
            &["req", "-new", "-keyout", &key, "-out", &request, "-subj", &format!("/CN={name}")][..],
            &KEY,
        ]);
        self.openssl(&[
            &["x509", "-req", "-in", &request, "-CA", "ca.crt", "-CAkey", "ca.key"][..],
            &["-CAcreateserial", "-days", "2", "-out", &signed, "-extfile", "extension"],
        ]);
    }

    fn openssl(&self, words: &[&[&str]]) {
        let mut line = Command::new("openssl");
        line.current_dir(self.dir.path()).args(words.concat());
        let done = line.stdin(Stdio::null()).output().expect("openssl is installed");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
