//! What the tests of this crate share: the servers, and a place of one's own on
//! each.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

pub mod line;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::header::CONTENT_LENGTH;
use http::{Method, Request};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpClient, HttpRequestBody};
use tenure_conformance::Harness;
use tenure_object::{BucketOptions, BucketStore};
use tenure_store::{Clock, ManualClock, SharedStore};
use tokio::sync::OnceCell;

/// The account and key that Azurite is born with.
pub const AZURITE: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);
/// What SeaweedFS is started with; it checks signatures.
pub const SEAWEEDFS: (&str, &str) = ("tenure-key", "tenure-secret");

/// The bucket that tests share, each below a prefix of its own.
pub const BUCKET: &str = "tenure";

/// A server of one of the three kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Moto,
    SeaweedFs,
    Azurite,
    FakeGcs,
    /// These two ignore conditions.
    S3rver,
    GcpEmulator,
}

impl Server {
    fn variable(self) -> &'static str {
        match self {
            Self::Moto => "TENURE_TEST_MOTO_URL",
            Self::SeaweedFs => "TENURE_TEST_SEAWEEDFS_URL",
            Self::Azurite => "TENURE_TEST_AZURITE_URL",
            Self::FakeGcs => "TENURE_TEST_FAKE_GCS_URL",
            Self::S3rver => "TENURE_TEST_S3RVER_URL",
            Self::GcpEmulator => "TENURE_TEST_GCP_EMULATOR_URL",
        }
    }

    /// Where it is. `cargo xtask test` starts it.
    pub fn endpoint(self) -> String {
        let found = std::env::var(self.variable());
        found.expect("run the tests by `cargo xtask test`, or start servers by `cargo xtask serve`")
    }

    fn scheme(self) -> &'static str {
        match self {
            Self::Moto | Self::SeaweedFs | Self::S3rver => "s3",
            Self::Azurite => "az",
            Self::FakeGcs | Self::GcpEmulator => "gs",
        }
    }

    /// Options for a bucket of this server, with the right credentials.
    pub fn options(self, bucket: &str, prefix: &str) -> BucketOptions {
        self.options_at(&self.endpoint(), bucket, prefix)
    }

    /// The same, by another way to it.
    pub fn options_at(self, endpoint: &str, bucket: &str, prefix: &str) -> BucketOptions {
        let mut endpoint = endpoint.to_owned();
        if self == Self::Azurite {
            endpoint = format!("{endpoint}/{}", AZURITE.0);
        }
        let url = format!("{}://{bucket}/{prefix}?endpoint={endpoint}", self.scheme());
        let options = BucketOptions::from_url(&url).unwrap();
        match self {
            Self::Moto | Self::S3rver => {
                options.with("aws_access_key_id", "S3RVER").with("aws_secret_access_key", "S3RVER")
            }
            Self::SeaweedFs => options
                .with("aws_access_key_id", SEAWEEDFS.0)
                .with("aws_secret_access_key", SEAWEEDFS.1),
            Self::Azurite => options
                .with("azure_storage_account_name", AZURITE.0)
                .with("azure_storage_account_key", AZURITE.1),
            Self::FakeGcs | Self::GcpEmulator => options,
        }
    }

    /// Makes the shared bucket, if it is not there.
    pub async fn make_bucket(self) {
        static MADE: [OnceCell<()>; 6] = [const { OnceCell::const_new() }; 6];
        MADE[self as usize].get_or_init(|| self.make(BUCKET)).await;
    }

    pub async fn make(self, bucket: &str) {
        let endpoint = self.endpoint();
        let mut request = match self.scheme() {
            "s3" => put(format!("{endpoint}/{bucket}")),
            "az" => put(format!("{endpoint}/{}/{bucket}?restype=container", AZURITE.0)),
            _ => Request::builder()
                .method(Method::POST)
                .uri(format!("{endpoint}/storage/v1/b?project=test"))
                .header("content-type", "application/json")
                .body(format!("{{\"name\":\"{bucket}\"}}").into())
                .unwrap(),
        };
        match self {
            Self::SeaweedFs => {
                let credential = AwsCredential {
                    key_id: SEAWEEDFS.0.into(),
                    secret_key: SEAWEEDFS.1.into(),
                    token: None,
                };
                let signer = AwsAuthorizer::new(&credential, "s3", "us-east-1");
                signer.try_authorize(&mut request, None).unwrap();
            }
            Self::Azurite => {
                let key = AzureAccessKey::try_new(AZURITE.1).unwrap();
                let credential = AzureCredential::AccessKey(key);
                AzureAuthorizer::new(&credential, AZURITE.0).try_authorize(&mut request).unwrap();
            }
            _ => {}
        }
        let status = plain_client().execute(request).await.unwrap().status();
        assert!(status.is_success() || status.as_u16() == 409, "{self:?} said {status}");
    }
}

fn put(uri: String) -> Request<HttpRequestBody> {
    let request = Request::builder().method(Method::PUT).uri(uri).header(CONTENT_LENGTH, "0");
    request.body(HttpRequestBody::empty()).unwrap()
}

/// A client without TLS, for loopback.
pub fn plain_client() -> HttpClient {
    HttpClient::new(plain())
}

pub fn plain() -> reqwest::Client {
    reqwest::Client::builder().tls_backend_preconfigured(no_tls()).build().unwrap()
}

fn no_tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// A prefix that no other test uses, in this run or an earlier one on the server.
pub fn fresh_prefix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut salt = [0_u8; 6];
    getrandom::fill(&mut salt).unwrap();
    let salt: String = salt.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t{}-{count}-{salt}", std::process::id())
}

/// A prefix of one's own on a shared server, as a backend of the suite. Its
/// stores judge by a clock that is moved by hand, so that no case waits.
pub struct Place {
    server: Server,
    prefix: String,
    clock: Arc<ManualClock>,
}

impl Place {
    pub fn on(server: Server) -> Self {
        Self { server, prefix: fresh_prefix(), clock: Arc::new(ManualClock::new()) }
    }

    pub fn options(&self) -> BucketOptions {
        let options = self.server.options(BUCKET, &self.prefix);
        // Following goes by real time; the clock moved by hand stands still, so
        // that no list is ever new enough to be kept.
        options
            .poll(Duration::from_millis(30))
            .request_timeout(Duration::from_secs(30))
            .poll_held(Duration::ZERO)
            .listing_age(Duration::ZERO)
    }

    pub async fn store(&self) -> BucketStore {
        self.server.make_bucket().await;
        let opened = BucketStore::open_with(self.options(), self.clock.clone()).await;
        opened.unwrap_or_else(|error| panic!("{:?} does not open: {error}", self.server))
    }
}

#[async_trait]
impl Harness for Place {
    async fn open(&self) -> SharedStore {
        self.store().await.shared()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        tokio::task::yield_now().await;
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn unit(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn journal_bound(&self) -> Option<usize> {
        None
    }
}
