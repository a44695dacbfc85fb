//! Handshakes in memory: which server is accepted, and what a client shows of itself.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tenure_store::ErrorKind;
use tenure_store::tls::{Check, Roots, Tls};
use tenure_testkit::{Authority, fresh_name};

/// A server with a certificate for `localhost`, which asks clients for one of `clients`.
fn server(authority: &Authority, clients: Option<&Authority>) -> ServerConnection {
    let folder = Folder::new();
    let (certificate, key) = authority.sign("DNS:localhost", &folder.0);
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(clients.root()).unwrap()).unwrap();
            let roots = Arc::new(roots);
            let asks = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            config.with_client_cert_verifier(asks.unwrap())
        }
    };
    let mut config = config.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"ours".to_vec()];
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// A folder for one test; gone when this is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(fresh_name("tls"));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether the handshake succeeds.
fn shake(tls: &Tls, host: &str, mut server: ServerConnection) -> Result<(), rustls::Error> {
    let config = Arc::new(tls.config().unwrap());
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut client = ClientConnection::new(config, name).unwrap();
    for _ in 0..10 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        while !bytes.is_empty() {
            let read = server.read_tls(&mut bytes.as_slice()).unwrap();
            bytes.drain(..read);
        }
        server.process_new_packets()?;
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        while !bytes.is_empty() {
            let read = client.read_tls(&mut bytes.as_slice()).unwrap();
            bytes.drain(..read);
        }
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}

#[test]
fn a_server_is_accepted_by_its_root_and_its_name() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let trusting = Tls::new().roots(Roots::PublicAnd(authority.root())).protocols(&["ours"]);
    shake(&trusting, "localhost", server(&authority, None)).unwrap();
    shake(&trusting, "elsewhere", server(&authority, None)).unwrap_err();
    shake(&trusting, "localhost", server(&stranger, None)).unwrap_err();
    shake(&Tls::new(), "localhost", server(&authority, None)).unwrap_err();
}

#[test]
fn a_lesser_check_looks_at_the_root_alone_or_at_nothing() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let any_host = Tls::new().roots(Roots::File(authority.root())).check(Check::AnyHost);
    shake(&any_host, "elsewhere", server(&authority, None)).unwrap();
    shake(&any_host, "localhost", server(&stranger, None)).unwrap_err();
    let nothing = Tls::new().check(Check::Nothing);
    shake(&nothing, "elsewhere", server(&stranger, None)).unwrap();
}

#[test]
fn a_protocol_that_the_server_does_not_speak_ends_the_handshake() {
    let authority = Authority::new();
    let other = Tls::new().roots(Roots::File(authority.root())).protocols(&["theirs"]);
    shake(&other, "localhost", server(&authority, None)).unwrap_err();
}

#[test]
fn a_client_shows_its_certificate_to_a_server_that_asks() {
    let authority = Authority::new();
    let (certificate, key) = authority.identity("one");
    let mut shows = Tls::new();
    assert!(shows.set("ca_file", authority.root().to_str().unwrap()));
    shake(&shows, "localhost", server(&authority, Some(&authority))).unwrap_err();
    assert!(shows.set("cert_file", certificate.to_str().unwrap()));
    assert!(shows.set("key_file", key.to_str().unwrap()));
    shake(&shows, "localhost", server(&authority, Some(&authority))).unwrap();
}

/// Each error says which option, which file, and what to do.
#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let folder = Folder::new();
    let (certificate, key) = authority.identity("one");
    let said = |tls: Tls| {
        let error = tls.config().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let empty = said(Tls::new().roots(Roots::PublicAnd(folder.file("empty.pem", ""))));
    assert!(empty.contains("ca_file") && empty.contains("empty.pem"), "{empty}");
    assert!(empty.contains("there is no certificate in it"), "{empty}");
    let absent = said(Tls::new().certificate(folder.0.join("absent.pem"), key.clone()));
    assert!(absent.contains("cert_file") && absent.contains("absent.pem"), "{absent}");
    let other = authority.identity("two").1;
    let mixed = said(Tls::new().certificate(certificate.clone(), other));
    assert!(mixed.contains("cert_file and key_file do not go together"), "{mixed}");
    let mut alone = Tls::new();
    assert!(alone.set("cert_file", certificate.to_str().unwrap()));
    assert!(said(alone).contains("cert_file is set and key_file is not"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = said(Tls::new().certificate(certificate, key));
    assert!(open.contains("others may read it; chmod 600"), "{open}");
}
