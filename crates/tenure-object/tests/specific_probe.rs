//! What opening a bucket finds out, on real servers.

mod common;

use common::{BUCKET, Server, fresh_prefix};
use tenure_cas::Loaded;
use tenure_object::{BucketOptions, BucketStore};
use tenure_store::{Error, ErrorKind};

async fn refused(options: BucketOptions) -> Error {
    BucketStore::open(options).await.expect_err("it must not open")
}

/// Nothing skips the probe: these answer 200 to every conditional write.
#[tokio::test]
async fn a_server_that_ignores_conditions_is_refused() {
    for server in [Server::S3rver, Server::GcpEmulator] {
        server.make(BUCKET).await;
        let error = refused(server.options(BUCKET, &fresh_prefix())).await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{server:?}: {error}");
        let said = error.to_string();
        assert!(said.contains("cannot hold elections") && said.contains("If-Match"), "{said}");
    }
}

#[tokio::test]
async fn a_missing_bucket_is_told_by_its_name() {
    // Not SeaweedFS, which makes a bucket of whatever is written to: sometimes it calls
    // it missing first, and sometimes it is there at once.
    for server in [Server::Moto, Server::Azurite, Server::FakeGcs] {
        let missing = format!("not-there-{}", fresh_prefix());
        let error = refused(server.options(&missing, &fresh_prefix())).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{server:?}: {error}");
        assert!(error.to_string().contains(&missing), "{error}");
        assert!(!error.may_have_applied(), "{error}");
    }
}

/// SeaweedFS and Azurite check signatures. What is wrong is told; the key is not.
#[tokio::test]
async fn a_wrong_key_is_denied_and_not_shown() {
    let s3 = Server::SeaweedFs;
    let wrong = s3.options(BUCKET, "p").with("aws_secret_access_key", "hunter2hunter2");
    let azure = Server::Azurite;
    let key = "aHVudGVyMmh1bnRlcjI=";
    let other = azure.options(BUCKET, "p").with("azure_storage_account_key", key);
    for (server, options) in [(s3, wrong), (azure, other)] {
        server.make_bucket().await;
        let error = refused(options).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        let said = error.to_string();
        assert!(said.contains("check the credentials"), "{said}");
        assert!(!said.contains("hunter2") && !said.contains(key), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let endpoint = format!("http://127.0.0.1:{port}");
    for server in [Server::Moto, Server::Azurite, Server::FakeGcs] {
        let error = refused(server.options_at(&endpoint, BUCKET, "p")).await;
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert!(!error.may_have_applied(), "{error}");
    }
}

/// Sixteen at once find the same, and leave nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_probe_one_bucket_at_once_and_leave_nothing_behind() {
    for server in [Server::Moto, Server::SeaweedFs, Server::Azurite, Server::FakeGcs] {
        server.make_bucket().await;
        let prefix = fresh_prefix();
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..16 {
            opening.spawn(BucketStore::open(server.options(BUCKET, &prefix)));
        }
        let mut last = None;
        for opened in opening.join_all().await {
            last = Some(opened.unwrap_or_else(|error| panic!("{server:?}: {error}")));
        }
        let left = last.unwrap().register().list(&format!("{prefix}/")).await.unwrap();
        assert_eq!(left, [], "{server:?}");
    }
}

/// F3 at opening: Google throttles one object at one write a second.
#[tokio::test]
async fn timings_that_would_be_throttled_are_refused_before_anything_is_sent() {
    use tenure_core::{Preset, SettingsBuilder};
    let fast = SettingsBuilder::preset(Preset::Fast).build().unwrap();
    let nowhere = "gs://b?endpoint=http://127.0.0.1:1";
    let options = BucketOptions::from_url(nowhere).unwrap().settings(&fast);
    let said = refused(options).await.to_string();
    assert!(said.contains("1.33 times a second"), "{said}");
    let fine = SettingsBuilder::preset(Preset::Normal).build().unwrap();
    let options = BucketOptions::from_url(nowhere).unwrap().settings(&fine);
    assert_eq!(refused(options).await.kind(), ErrorKind::Unreachable);
}

/// An object that another program put there is not read into memory, nor is it
/// taken for a record.
#[tokio::test]
async fn an_object_too_large_for_a_record_is_foreign() {
    let server = Server::FakeGcs;
    for server in [server, Server::Moto, Server::Azurite] {
        server.make_bucket().await;
        let prefix = fresh_prefix();
        let options = server.options(BUCKET, &prefix);
        let register = BucketStore::open(options).await.unwrap().register();
        let key = format!("{prefix}/big");
        let big = vec![b'x'; (1 << 20) + 1];
        register.swap(&key, tenure_cas::Expect::Absent, big).await.unwrap();
        let error = register.load(&key, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
        assert_eq!(register.load(&format!("{prefix}/none"), None).await.unwrap(), Loaded::Absent);
    }
}
