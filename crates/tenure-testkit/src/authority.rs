//! Certificates for one test alone, made by `openssl`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An authority that signs certificates; gone when this is.
pub struct Authority {
    dir: tempfile::TempDir,
}

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Another one than every other.
    #[must_use]
    pub fn new() -> Self {
        let authority = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        authority.openssl(&[
            &["req", "-x509", "-keyout", "ca.key", "-out", "ca.crt", "-days", "2"][..],
            &["-subj", "/CN=An authority", "-addext", "keyUsage=critical,keyCertSign"],
            &KEY,
        ]);
        authority
    }

    /// The file of the root.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// Puts a certificate for these names (`DNS:localhost,IP:127.0.0.1`) into a folder:
    /// the files `server.crt` and `server.key`, which it answers with.
    pub fn sign(&self, names: &str, into: &Path) -> (PathBuf, PathBuf) {
        self.issue("server", "x", &format!("subjectAltName={names}\n"));
        let [certificate, key] = ["server.crt", "server.key"].map(|file| {
            std::fs::copy(self.dir.path().join(file), into.join(file)).expect("a copy");
            into.join(file)
        });
        (certificate, key)
    }

    /// A certificate by which a client shows who it is, and its key.
    #[must_use]
    pub fn identity(&self, role: &str) -> (PathBuf, PathBuf) {
        self.issue(role, role, "extendedKeyUsage=clientAuth\n");
        let key = self.dir.path().join(format!("{role}.key"));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("rights");
        (self.dir.path().join(format!("{role}.crt")), key)
    }

    fn issue(&self, stem: &str, name: &str, extension: &str) {
        std::fs::write(self.dir.path().join("extension"), extension).expect("a file");
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
