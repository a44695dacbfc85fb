//! What the server says in its codes, and what it keeps of a request that was
//! given up.

#![allow(clippy::unwrap_used)]

mod common;

use std::task::Poll;
use std::time::Duration;

use common::words::*;
use common::{Place, admin, until};
use tenure_store::{ErrorKind, Store};

/// B24: each code of the server leads to its policy. One that is misread would
/// make a passing trouble final, or a final one passing.
#[tokio::test]
async fn every_code_of_the_server_is_read_as_what_it_is() {
    let place = Place::new();
    let store = place.open().await;
    let leader = joined(&store, "a", 1).await;
    for (code, kind) in [
        ("25006", ErrorKind::Unwritable),
        ("53100", ErrorKind::Unwritable),
        ("53300", ErrorKind::Unreachable),
        ("53200", ErrorKind::Busy),
        ("57P01", ErrorKind::Unreachable),
        ("57P03", ErrorKind::Unreachable),
        ("08006", ErrorKind::Unreachable),
        ("57014", ErrorKind::Timeout),
        ("55P03", ErrorKind::Busy),
        ("40001", ErrorKind::Busy),
        ("40P01", ErrorKind::Busy),
        ("42501", ErrorKind::Denied),
        ("28000", ErrorKind::Denied),
        ("42883", ErrorKind::Foreign),
        ("42P01", ErrorKind::Foreign),
        ("22023", ErrorKind::Invalid),
        ("23514", ErrorKind::Invalid),
        ("XX000", ErrorKind::Internal),
    ] {
        // Whatever the verb does first now fails in this way.
        place
            .sql(&format!(
                "CREATE OR REPLACE FUNCTION {{s}}._check_ttl(p_ttl_us bigint) \
                 RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN \
                 RAISE EXCEPTION 'as if' USING ERRCODE = '{code}'; END $$"
            ))
            .await;
        let error = store.claim(&ns(), &claim(&leader, "e", 1)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{code}: {error}");
        assert!(!error.may_have_applied(), "a statement that failed was rolled back: {error}");
        assert!(error.to_string().contains(code), "{error}");
    }
}

/// Whether a request was answered by the time it was looked at so often.
async fn answered_within<T>(looks: u64, asked: impl Future<Output = T>) -> bool {
    let mut asked = std::pin::pin!(asked);
    for _ in 0..=looks {
        let look =
            |cx: &mut std::task::Context<'_>| Poll::Ready(asked.as_mut().poll(cx).is_ready());
        if std::future::poll_fn(look).await {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// B13: requests that are given up at any moment leave no lock and no open
/// transaction behind, and cost no other member anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_leaves_no_lock_behind() {
    let place = Place::new();
    let store = place.open().await;
    let term = leader(&store, "a", 1, "e").await;
    let other = joined(&store, "b", 2).await;
    let mut given_up = 0;
    for nonce in 1..=60_u64 {
        let claim = claim(&other, &format!("e{}", nonce % 7), nonce);
        let ns = ns();
        let asked = store.claim(&ns, &claim);
        // Before the server can have answered, and around the time it does.
        given_up += if nonce % 2 == 0 {
            u64::from(!answered_within(nonce % 6, asked).await)
        } else {
            let within = Duration::from_micros(nonce * 50);
            u64::from(tokio::time::timeout(within, asked).await.is_err())
        };
    }
    assert!(given_up > 5, "some were given up: {given_up}");
    let client = admin().await;
    until("nothing is held by a request that was given up", || async {
        let held = "SELECT count(*) FROM pg_stat_activity s LEFT JOIN pg_locks l ON l.pid = s.pid \
                    WHERE s.application_name = $1 AND (l.locktype = 'advisory' OR l.relation = \
                    ($2 || '.namespaces')::regclass OR s.state LIKE 'idle in transaction%')";
        let row = client.query_one(held, &[&place.schema, &place.schema]).await.unwrap();
        row.get::<_, i64>(0) == 0
    })
    .await;
    // No lock of any session stands for a term: it outlives them all.
    place.terminate().await;
    let again = place.open().await;
    let seen = held(again.claim(&ns(), &claim(&other, "e", 99)).await.unwrap());
    assert_eq!((seen.number, seen.holder.map(|h| h.member)), (term.number, Some(term.member)));
}
