//! What happens when an operator deletes objects by hand.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{BUCKET, Server, fresh_prefix};
use tenure::Tenure;
use tenure_cas::{Loaded, Register, Removed};
use tenure_object::BucketStore;

const TTL: Duration = Duration::from_millis(1_500);
const PATIENCE: Duration = Duration::from_secs(30);

async fn delete(register: &Arc<dyn Register>, key: &str) {
    // The holder writes it all the time: until a removal meets no other write.
    for _ in 0..1_000 {
        match register.load(key, None).await.unwrap() {
            Loaded::Found { version, .. } => {
                if register.remove(key, &version).await.unwrap() == Removed::Gone {
                    return;
                }
            }
            _ => panic!("{key} is not there"),
        }
    }
    panic!("{key} could not be deleted");
}

/// H5: the record of an election is deleted under its leader. The leader gives
/// up, and the next term is higher than any that those who live have seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_election_goes_on_from_the_highest_number_seen() {
    for server in [Server::FakeGcs, Server::SeaweedFs] {
        server.make_bucket().await;
        let prefix = fresh_prefix();
        let store = BucketStore::open(server.options(BUCKET, &prefix)).await.unwrap();
        let register = store.register();
        let tenure = Tenure::with_store(store.shared()).id("a").ttl(TTL).connect().await.unwrap();
        let election = tenure.election("e");
        for _ in 0..3 {
            election.campaign_timeout(PATIENCE).await.unwrap().resign().await.unwrap();
        }
        let led = election.campaign_timeout(PATIENCE).await.unwrap();
        let before = led.token();
        assert!(before >= 4);
        delete(&register, &format!("{prefix}/default/elections/e")).await;
        let deleted = std::time::Instant::now();
        tokio::time::timeout(PATIENCE, led.lost()).await.expect("the leader notices");
        let noticed = deleted.elapsed();
        // Within about a ttl; the rest is for a busy machine.
        assert!(noticed < TTL * 5 / 2, "noticed after {noticed:?} on {server:?}");
        drop(led);
        let next = election.campaign_timeout(PATIENCE).await.unwrap();
        assert!(next.token() > before, "{} after {before} on {server:?}", next.token());
    }
}

/// The record of a member is deleted: the member is ended, and joins anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_member_is_ended_and_comes_back() {
    let server = Server::FakeGcs;
    server.make_bucket().await;
    let prefix = fresh_prefix();
    let store = BucketStore::open(server.options(BUCKET, &prefix)).await.unwrap();
    let register = store.register();
    let tenure = Tenure::with_store(store.shared()).id("a").ttl(TTL).connect().await.unwrap();
    let election = tenure.election("e");
    let led = election.campaign_timeout(PATIENCE).await.unwrap();
    let before = led.token();
    delete(&register, &format!("{prefix}/default/members/a")).await;
    tokio::time::timeout(PATIENCE, led.lost()).await.expect("the member is ended");
    drop(led);
    let next = election.campaign_timeout(PATIENCE).await.unwrap();
    assert!(next.token() > before);
}
