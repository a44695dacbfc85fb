//! What is peculiar to etcd: what can be wrong with a cluster, each with the words that name
//! it and the remedy, and what a restored or compacted one does.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::server::{Etcd, etcdctl};
use common::{fresh_prefix, options};
use tenure_cas::{AllSwapped, Batches, Change, Expect, Loaded, Swapped, Write};
use tenure_core::{
    Bid, Claim, Claimed, Claims, ElectionName, Hint, Incarnation, Join, Joined, MemberId,
    MemberRef, Namespace, Nonce, Release, ReleaseItem, Term, TermRef,
};
use tenure_etcd::{EtcdOptions, EtcdStore};
use tenure_store::{ErrorKind, Followed, SharedStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);

fn member(id: &str, life: u128) -> MemberRef {
    MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life))
}

async fn joins(store: &SharedStore, me: &MemberRef) {
    let joined = store.join(&Namespace::default(), &Join::new(me.clone(), TTL)).await.unwrap();
    assert!(matches!(joined, Joined::In { .. }), "{joined:?}");
}

async fn bids(store: &SharedStore, me: &MemberRef, nonce: u64) -> Claimed {
    let bid = Bid::new(ElectionName::new("e").unwrap(), Nonce::new(nonce));
    let claim = Claim::new(me.clone(), TTL, [bid]);
    match store.claim(&Namespace::default(), &claim).await.unwrap() {
        Claims::Answered(mut answers) => answers.pop().unwrap(),
        Claims::Ended { superseded } => panic!("ended, superseded: {superseded}"),
    }
}

async fn wins(store: &SharedStore, me: &MemberRef, nonce: u64) -> Term {
    match bids(store, me, nonce).await {
        Claimed::Won(term) => term,
        other => panic!("not won: {other:?}"),
    }
}

async fn refused(url: &str) -> (ErrorKind, String) {
    let options = EtcdOptions::from_url(url).unwrap().request_timeout(Duration::from_secs(3));
    let error = EtcdStore::open(options).await.unwrap_err();
    (error.kind(), error.to_string())
}

/// A resignation is heard, and taken, in far less than any poll would take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resignation_is_heard_without_polling() {
    let prefix = fresh_prefix();
    let a = EtcdStore::open(options(&prefix)).await.unwrap().shared();
    let b = EtcdStore::open(options(&prefix)).await.unwrap().shared();
    let leader = member("a", 1);
    let waits = member("b", 2);
    joins(&a, &leader).await;
    joins(&b, &waits).await;
    let term = wins(&a, &leader, 1).await;
    assert!(matches!(bids(&b, &waits, 2).await, Claimed::Held(_)));
    let mut hints = b.follow(&Namespace::default()).await.unwrap();
    let first = timeout(PATIENCE, hints.next()).await.unwrap().unwrap();
    assert_eq!(first, Followed::Hint(Hint::Anything));
    let item = ReleaseItem::term(TermRef::new(term.election.clone(), term.number));
    a.release(&Namespace::default(), &Release::new(leader, [item])).await.unwrap();
    let next = timeout(PATIENCE, hints.next()).await.unwrap().unwrap();
    assert!(matches!(next, Followed::Hint(Hint::Vacant { .. })), "{next:?}");
    assert_eq!(wins(&b, &waits, 3).await.number.get(), term.number.get() + 1);
}

/// The fence is a comparison of the caller's own transaction: a deposed leader's fails.
#[tokio::test]
async fn a_fence_in_a_transaction_of_ones_own_refuses_a_deposed_leader() {
    let prefix = fresh_prefix();
    let opened = EtcdStore::open(options(&prefix)).await.unwrap();
    let store = opened.clone().shared();
    let me = member("a", 1);
    joins(&store, &me).await;
    let old = wins(&store, &me, 1).await;
    let fence = opened.fence(&Namespace::default(), &old);
    let found = opened.register().load(&fence.key, None).await.unwrap();
    let Loaded::Found { bytes, version } = found else { panic!("no cell {}", fence.key) };
    assert_eq!(bytes, fence.value.as_bytes());
    let new = wins(&store, &me, 2).await;
    assert!(new.number > old.number);
    let found = opened.register().load(&fence.key, Some(&version)).await.unwrap();
    let Loaded::Found { bytes, .. } = found else { panic!("the cell has not changed: {found:?}") };
    assert_ne!(bytes, fence.value.as_bytes());
    assert_eq!(bytes, opened.fence(&Namespace::default(), &new).value.as_bytes());
}

/// All or nothing, and a cell that is compared by no one is written with the rest.
#[tokio::test]
async fn writes_of_several_cells_are_all_or_nothing() {
    let prefix = fresh_prefix();
    let register = EtcdStore::open(options(&prefix)).await.unwrap().register();
    let batches: &dyn Batches = register.batches().unwrap();
    let cell = |name: &str, expect| Write {
        key: format!("{prefix}/n/elections/{name}"),
        expect,
        bytes: b"x".to_vec(),
    };
    let both = vec![cell("a", Some(Expect::Absent)), cell("b", None)];
    let AllSwapped::Stored(versions) = batches.swap_all(both.clone()).await.unwrap() else {
        panic!("a conflict")
    };
    assert_eq!(batches.swap_all(both).await.unwrap(), AllSwapped::Conflict);
    let known = register.load(&format!("{prefix}/n/elections/b"), Some(&versions[1])).await;
    assert_eq!(known.unwrap(), Loaded::Unchanged);
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_named() {
    let (kind, said) = refused("etcd://127.0.0.1:1,127.0.0.1:2/p").await;
    assert_eq!(kind, ErrorKind::Unreachable);
    assert!(said.contains("127.0.0.1:") && said.contains("check hosts"), "{said}");
}

/// A server that is no etcd, and one that is too old, say so by their answers.
#[tokio::test]
async fn a_server_that_is_too_old_or_none_is_named() {
    async fn plays(answer: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = [0; 4_096];
                let _ = stream.read(&mut asked).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        format!("etcd://127.0.0.1:{port}/p")
    }
    let old = plays(
        "HTTP/1.1 200 OK\r\ncontent-length: 20\r\nconnection: close\r\n\r\n{\"version\":\"3.3.27\"}",
    );
    let (kind, said) = refused(&old.await).await;
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(said.contains("3.3.27") && said.contains("at least 3.4"), "{said}");
    let gone = plays("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let (kind, said) = refused(&gone.await).await;
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(said.contains("enable-grpc-gateway"), "{said}");
}

#[tokio::test]
async fn a_prefix_of_another_program_is_refused() {
    let prefix = fresh_prefix();
    let register = EtcdStore::open(options(&prefix)).await.unwrap().register();
    let stored = register.swap(&format!("{prefix}/config"), Expect::Absent, b"1".to_vec()).await;
    assert!(matches!(stored.unwrap(), Swapped::Stored(_)));
    let error = EtcdStore::open(options(&prefix)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert!(error.to_string().contains("use another prefix"), "{error}");
}

/// Wrong password, no password, and no right: each by its own words, and no secret in them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_and_missing_rights_are_named() {
    let server = Etcd::start(&[]).await;
    let at = server.address();
    for line in [
        "user add root:secret",
        "user add app:hunter2",
        "user add reader:hunter2",
        "role add app",
        "role grant-permission app --prefix=true readwrite mine/",
        "user grant-role app app",
        "role add reader",
        "role grant-permission reader --prefix=true read mine/",
        "user grant-role reader reader",
        "user grant-role root root",
        "auth enable",
    ] {
        etcdctl(&at, line).await;
    }
    let (kind, said) = refused(&format!("etcd://app:wrong-one@{at}/mine")).await;
    assert_eq!(kind, ErrorKind::Denied);
    assert!(said.contains("password is wrong") && !said.contains("wrong-one"), "{said}");
    let (kind, said) = refused(&format!("etcd://{at}/mine")).await;
    assert_eq!(kind, ErrorKind::Denied);
    assert!(said.contains("ETCD_USER"), "{said}");
    let (kind, said) = refused(&format!("etcd://app:hunter2@{at}/other")).await;
    assert_eq!(kind, ErrorKind::Denied);
    assert!(said.contains("grant-permission"), "{said}");
    // The right to write is found missing by the first write.
    let url = format!("etcd://reader:hunter2@{at}/mine");
    let store = EtcdStore::open(EtcdOptions::from_url(&url).unwrap()).await.unwrap().shared();
    let join = Join::new(member("a", 1), TTL);
    let error = store.join(&Namespace::default(), &join).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("grant-permission") && !error.may_have_applied(), "{error}");
    // With the right, all of it works, and a watch too.
    let url = format!("etcd://app:hunter2@{at}/mine");
    let store = EtcdStore::open(EtcdOptions::from_url(&url).unwrap()).await.unwrap().shared();
    let me = member("a", 1);
    joins(&store, &me).await;
    assert_eq!(wins(&store, &me, 1).await.number.get(), 1);
    let mut hints = store.follow(&Namespace::default()).await.unwrap();
    assert!(timeout(PATIENCE, hints.next()).await.unwrap().is_ok());
}

/// Compacting everything under a watch and a leader costs neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compacted_history_costs_nothing() {
    let server = Etcd::start(&[]).await;
    let at = server.address();
    let options = EtcdOptions::from_url(&format!("etcd://{at}/p")).unwrap();
    let opened = EtcdStore::open(options).await.unwrap();
    let register = opened.register();
    let store = opened.shared();
    let me = member("a", 1);
    joins(&store, &me).await;
    assert_eq!(wins(&store, &me, 1).await.number.get(), 1);
    let mut watching = register.watch(&["p/".to_owned()]).unwrap();
    assert_eq!(timeout(PATIENCE, watching.next()).await.unwrap().unwrap(), Change::Lost);
    assert_eq!(wins(&store, &me, 2).await.number.get(), 2);
    let status = etcdctl(&at, "endpoint status -w json").await;
    let revision = status.split("\"revision\":").nth(1).unwrap();
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    etcdctl(&at, &format!("compact {revision}")).await;
    let told = timeout(PATIENCE, watching.next()).await.unwrap().unwrap();
    assert!(matches!(told, Change::Put { .. }), "{told:?}");
    assert_eq!(wins(&store, &me, 3).await.number.get(), 3);
    let mut watching = register.watch(&["p/".to_owned()]).unwrap();
    assert_eq!(timeout(PATIENCE, watching.next()).await.unwrap().unwrap(), Change::Lost);
}

/// A full quota is named with what to do; nothing is lost, and it goes on afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_quota_is_named_and_passes() {
    let server = Etcd::start(&["--quota-backend-bytes=2097152"]).await;
    let at = server.address();
    let options = EtcdOptions::from_url(&format!("etcd://{at}/p")).unwrap();
    let opened = EtcdStore::open(options.request_timeout(Duration::from_secs(3))).await.unwrap();
    let register = opened.register();
    let store = opened.shared();
    let me = member("a", 1);
    joins(&store, &me).await;
    assert_eq!(wins(&store, &me, 1).await.number.get(), 1);
    let mut full = None;
    for n in 0..200 {
        let filler = vec![b'x'; 64 << 10];
        let stored = register.swap(&format!("q/{n}"), Expect::Absent, filler).await;
        if let Err(error) = stored {
            full = Some(error);
            break;
        }
    }
    let full = full.expect("two megabytes are full");
    assert_eq!(full.kind(), ErrorKind::Busy);
    assert!(full.to_string().contains("alarm disarm"), "{full}");
    etcdctl(&at, "del --prefix q/").await;
    let status = etcdctl(&at, "endpoint status -w json").await;
    let revision = status.split("\"revision\":").nth(1).unwrap();
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    etcdctl(&at, &format!("compact {revision}")).await;
    etcdctl(&at, "defrag").await;
    etcdctl(&at, "alarm disarm").await;
    assert_eq!(wins(&store, &me, 2).await.number.get(), 2);
}

/// M6: a cluster that has forgotten what it answered is asked nothing more by those that know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_snapshot_is_noticed_and_refused() {
    let mut server = Etcd::start(&[]).await;
    let at = server.address();
    let options = EtcdOptions::from_url(&format!("etcd://{at}/p")).unwrap();
    let store = EtcdStore::open(options.clone()).await.unwrap().shared();
    let me = member("a", 1);
    joins(&store, &me).await;
    assert_eq!(wins(&store, &me, 1).await.number.get(), 1);
    server.stop().await;
    let copy = server.copy_data();
    server.start_again().await;
    assert_eq!(wins(&store, &me, 2).await.number.get(), 2);
    assert_eq!(wins(&store, &me, 3).await.number.get(), 3);
    server.stop().await;
    server.put_back(copy);
    server.start_again().await;
    let claim =
        Claim::new(me.clone(), TTL, [Bid::new(ElectionName::new("e").unwrap(), Nonce::new(4))]);
    let error = store.claim(&Namespace::default(), &claim).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert!(error.to_string().contains("tenure restored"), "{error}");
    let error = store.claim(&Namespace::default(), &claim).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign, "and stays refused: {error}");
}

/// One endpoint of two is dead: every request still comes through, and soon only the live one
/// is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_endpoint_costs_no_request() {
    let prefix = fresh_prefix();
    let url = format!("etcd://127.0.0.1:1,{}/{prefix}", common::address());
    let store = EtcdStore::open(EtcdOptions::from_url(&url).unwrap()).await.unwrap().shared();
    let me = member("a", 1);
    joins(&store, &me).await;
    for nonce in 1..=100 {
        assert_eq!(wins(&store, &me, nonce).await.number.get(), nonce);
    }
}
