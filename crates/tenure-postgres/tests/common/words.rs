//! Requests, as short as tests want them; and what only this store has.

use std::time::Duration;

use tenure_core::{Join, MemberRef, Term};
use tenure_postgres::Postgres;
use tenure_store::{FenceError, FenceIn, FencedTerm, Store};
pub use tenure_testkit::requests::*;

/// What a promoted copy finds: another server wrote last, on the timeline before.
pub const PROMOTED: &str = "UPDATE {s}.settings SET timeline = timeline - 1, started_at = NULL";

/// A member that has joined for a ttl of its own.
pub async fn joined_for(store: &dyn Store, id: &str, life: u128, ttl: Duration) -> MemberRef {
    let member = member(id, life);
    store.join(&ns(), &Join { ttl, ..join(&member) }).await.unwrap();
    member
}

/// Fences a term that this store gave out.
pub async fn fence_in<T: FenceIn<Postgres>>(
    store: &dyn Store,
    tx: &mut T,
    term: &Term,
) -> Result<(), FenceError> {
    let identity = store.capabilities().identity;
    tx.fence_in(FencedTerm { store: &identity, ns: &ns(), term }.into()).await
}
