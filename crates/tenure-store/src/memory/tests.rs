//! What only the store can refuse.

use std::time::Duration;

use tenure_core::{
    Bid, Claim, ElectionName, Incarnation, Join, MemberId, MemberRef, Namespace, Nonce, Query,
};

use super::MemoryStore;
use crate::{ErrorKind, Store};

const TTL: Duration = Duration::from_secs(10);

fn a() -> MemberRef {
    MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1))
}

fn join() -> Join {
    Join::new(a(), TTL)
}

fn claim(count: usize) -> Claim {
    let name = |place| ElectionName::new(format!("e{place}")).unwrap();
    Claim::new(a(), TTL, (0..count).map(|place| Bid::new(name(place), Nonce::new(1))))
}

#[tokio::test]
async fn a_request_over_the_batch_limit_is_refused_whole_with_the_remedy() {
    let store = MemoryStore::new();
    let ns = Namespace::default();
    store.join(&ns, &join()).await.unwrap();
    let error = store.claim(&ns, &claim(1_001)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(!error.may_have_applied());
    let text = error.to_string();
    assert!(text.contains("1001 bids") && text.contains("split the request"), "{text}");
    let seen = store.read(&ns, &Query::everything()).await.unwrap();
    assert!(seen.elections.is_empty());
}
