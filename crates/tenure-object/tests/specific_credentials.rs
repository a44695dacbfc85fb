//! Credentials, taken from where each cloud's users have them: the environment of
//! a process, and the roles of a container, of an instance and of a web identity,
//! played by a small server. SeaweedFS and Azurite check signatures.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{AZURITE, BUCKET, SEAWEEDFS, Server, fresh_prefix};
use tenure_object::{BucketOptions, BucketStore};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const URL: &str = "TENURE_TEST_CREDENTIALS_URL";

fn url(server: Server, prefix: &str) -> String {
    match server {
        Server::Azurite => {
            format!("az://{BUCKET}/{prefix}?endpoint={}/{}", server.endpoint(), AZURITE.0)
        }
        _ => format!("s3://{BUCKET}/{prefix}?endpoint={}&region=us-east-1", server.endpoint()),
    }
}

/// What this test is as a process of its own: it opens what it is told to.
#[tokio::test(flavor = "current_thread")]
async fn a_process_finds_its_keys_in_the_environment() {
    if let Ok(url) = std::env::var(URL) {
        BucketStore::open(BucketOptions::from_url(&url).unwrap()).await.unwrap();
        return;
    }
    let s3 = [("AWS_ACCESS_KEY_ID", SEAWEEDFS.0), ("AWS_SECRET_ACCESS_KEY", SEAWEEDFS.1)];
    let azure =
        [("AZURE_STORAGE_ACCOUNT_NAME", AZURITE.0), ("AZURE_STORAGE_ACCOUNT_KEY", AZURITE.1)];
    for (server, keys) in [(Server::SeaweedFs, s3), (Server::Azurite, azure)] {
        server.make_bucket().await;
        let open = |keys: &[(&str, &str)]| {
            Command::new(std::env::current_exe().unwrap())
                .args(["a_process_finds_its_keys_in_the_environment", "--exact"])
                .env(URL, url(server, &fresh_prefix()))
                .env("AWS_EC2_METADATA_DISABLED", "true")
                .env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
                .envs(keys.iter().copied())
                .output()
                .unwrap()
        };
        let opened = open(&keys);
        let said = String::from_utf8_lossy(&opened.stdout);
        assert!(opened.status.success(), "{server:?}: {said}");
        let wrong = [keys[0], (keys[1].0, "aHVudGVyMg==")];
        let refused = open(&wrong);
        assert!(!refused.status.success(), "{server:?} takes any key");
        let said = String::from_utf8_lossy(&refused.stdout);
        assert!(!said.contains("aHVudGVyMg=="), "{said}");
    }
}

/// Plays the service that gives a role's credentials: they are SeaweedFS's own.
struct Role {
    /// How often they were given.
    given: AtomicU64,
}

impl Role {
    async fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let role = Arc::new(Self { given: AtomicU64::new(0) });
        let shared = role.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let role = shared.clone();
                tokio::spawn(async move { role.answer(stream).await });
            }
        });
        (role, endpoint)
    }

    async fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut first = String::new();
        let mut token = String::new();
        stream.read_line(&mut first).await?;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("authorization")
                || name.eq_ignore_ascii_case("x-aws-ec2-metadata-token")
            {
                token = value.trim().to_owned();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let (status, body) = match path {
            "/latest/api/token" => (200, "a-token".to_owned()),
            _ if path.contains("AssumeRoleWithWebIdentity") => (200, self.assumed(path)),
            _ if token != "a-token" => (401, String::new()),
            "/latest/meta-data/iam/security-credentials/" => (200, "a-role".to_owned()),
            "/container" | "/latest/meta-data/iam/security-credentials/a-role" => {
                (200, self.credentials())
            }
            _ => (404, String::new()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status} -\r\ncontent-length: {length}\r\n");
        stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).await
    }

    fn credentials(&self) -> String {
        self.given.fetch_add(1, Ordering::Relaxed);
        let (key, secret) = SEAWEEDFS;
        format!(
            r#"{{"AccessKeyId":"{key}","SecretAccessKey":"{secret}","Token":"",
                "Expiration":"2999-01-01T00:00:00Z"}}"#
        )
    }

    fn assumed(&self, path: &str) -> String {
        assert!(path.contains("WebIdentityToken=a-token") && path.contains("a-role"), "{path}");
        self.given.fetch_add(1, Ordering::Relaxed);
        let (key, secret) = SEAWEEDFS;
        format!(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
             <SessionToken></SessionToken><SecretAccessKey>{secret}</SecretAccessKey>\
             <Expiration>2999-01-01T00:00:00Z</Expiration><AccessKeyId>{key}</AccessKeyId>\
             </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
    }
}

/// Whether a test went on as a process of its own, without the credentials that
/// the user who runs it may have in the environment: those come first.
fn ran_without_credentials(test: &str) -> bool {
    let own = |name: &String| name.starts_with("AWS_");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact"]);
    let found: Vec<String> = std::env::vars().map(|(name, _)| name).filter(own).collect();
    if found.is_empty() {
        return false;
    }
    for name in &found {
        again.env_remove(name);
    }
    let ran = again.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    true
}

/// A file that holds the token a role is asked for with.
struct TokenFile(std::path::PathBuf);

impl TokenFile {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tenure-{}-token", fresh_prefix()));
        std::fs::write(&path, "a-token").unwrap();
        Self(path)
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_of_a_container_an_instance_or_a_web_identity_is_taken() {
    if ran_without_credentials("a_role_of_a_container_an_instance_or_a_web_identity_is_taken") {
        return;
    }
    let server = Server::SeaweedFs;
    server.make_bucket().await;
    let token = TokenFile::new();
    let file = token.0.to_str().unwrap();
    let (role, endpoint) = Role::start().await;
    let container = format!("{endpoint}/container");
    for given in [
        &[
            ("aws_container_credentials_full_uri", container.as_str()),
            ("aws_container_authorization_token_file", file),
        ][..],
        &[("aws_metadata_endpoint", endpoint.as_str())],
        &[
            ("aws_web_identity_token_file", file),
            ("aws_role_arn", "arn:aws:iam::1:role/a-role"),
            ("aws_endpoint_url_sts", endpoint.as_str()),
        ],
    ] {
        let before = role.given.load(Ordering::Relaxed);
        let options = BucketOptions::from_url(&url(server, &fresh_prefix())).unwrap();
        let options =
            given.iter().fold(options, |options, (key, value)| options.with(*key, *value));
        let opened = BucketStore::open(options).await;
        assert!(opened.is_ok(), "{:?}: {:?}", given[0].0, opened.err());
        assert_eq!(role.given.load(Ordering::Relaxed), before + 1, "{:?}", given[0].0);
    }
}

/// A program that has none is told what to set, for each cloud, and by no means that
/// no member leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_without_credentials_is_told_what_to_set() {
    if ran_without_credentials("a_program_without_credentials_is_told_what_to_set") {
        return;
    }
    let options = BucketOptions::from_url(&url(Server::SeaweedFs, "p")).unwrap();
    let options = options.with("aws_metadata_endpoint", "http://127.0.0.1:1");
    let error = BucketStore::open(options).await.unwrap_err();
    let said = error.to_string();
    assert_eq!(error.kind(), tenure_store::ErrorKind::Denied, "{said}");
    assert!(said.contains("AWS_ACCESS_KEY_ID") && !error.may_have_applied(), "{said}");
}
