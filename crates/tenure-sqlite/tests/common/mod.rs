//! What the tests of this crate share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod child;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Heartbeat, Incarnation, Join, Joined,
    MemberId, MemberRef, Namespace, Nonce, Priority, Profile, Query, Release, ReleaseCause,
    ReleaseItem, Seq, Term, TermNumber,
};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{ManualClock, Store};

pub const TTL: Duration = Duration::from_secs(10);

pub fn ns() -> Namespace {
    Namespace::default()
}

pub fn election(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

pub fn member(id: &str, life: u128) -> MemberRef {
    MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life))
}

pub fn join(member: &MemberRef) -> Join {
    Join {
        member: member.clone(),
        ttl: TTL,
        profile: Profile::default(),
        supersede: true,
        takes_over: false,
        seen: tenure_core::Seq::START,
    }
}

pub fn beat(member: &MemberRef) -> Heartbeat {
    Heartbeat { member: member.clone(), ttl: TTL, held: vec![] }
}

pub fn claim(member: &MemberRef, name: &str, nonce: u64) -> Claim {
    claim_all(member, [name], nonce)
}

pub fn claim_all<S: AsRef<str>>(
    member: &MemberRef,
    names: impl IntoIterator<Item = S>,
    nonce: u64,
) -> Claim {
    let bid = |name: S| Bid {
        election: election(name.as_ref()),
        priority: Priority::default(),
        nonce: Nonce::new(nonce),
    };
    let bids = names.into_iter().map(bid).collect();
    Claim { member: member.clone(), ttl: TTL, bids, heir_grace: Duration::ZERO, seen: Seq::START }
}

pub fn release(member: &MemberRef, name: &str, number: TermNumber) -> Release {
    let (election, cause) = (election(name), ReleaseCause::Resigned);
    let items = vec![ReleaseItem { election, number: Some(number), cause, successor: None }];
    Release { member: member.clone(), items, heir_grace: Duration::ZERO, hand_over: Duration::ZERO }
}

/// The answer to a claim of one election.
pub fn only(claims: Claims) -> Claimed {
    match claims {
        Claims::Answered(mut answers) if answers.len() == 1 => answers.remove(0),
        other => panic!("{other:?}"),
    }
}

pub fn won(claims: Claims) -> Term {
    match only(claims) {
        Claimed::Won(term) => term,
        held => panic!("not won: {held:?}"),
    }
}

pub fn held(claims: Claims) -> ElectionView {
    match only(claims) {
        Claimed::Held(view) => view,
        won => panic!("won: {won:?}"),
    }
}

pub async fn joined(store: &SqliteStore, member: &MemberRef) {
    let answer = store.join(&ns(), &join(member)).await.unwrap();
    assert!(matches!(answer, Joined::In { .. }), "{answer:?}");
}

pub async fn view(store: &SqliteStore, name: &str) -> ElectionView {
    let seen = store.read(&ns(), &Query::elections([election(name)])).await.unwrap();
    seen.elections.into_iter().next().unwrap()
}

/// A database of its own, in a directory that goes with it.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("tenure.db")
    }

    pub async fn open(&self) -> SqliteStore {
        self.open_with(SqliteOptions::new()).await
    }

    pub async fn open_with(&self, options: SqliteOptions) -> SqliteStore {
        SqliteStore::open(self.path(), options).await.unwrap()
    }

    pub fn lock_files(&self) -> Vec<String> {
        lock_files(&self.path())
    }

    /// The database as any other program sees it.
    pub fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

pub fn lock_files(path: &Path) -> Vec<String> {
    let mut directory = path.as_os_str().to_owned();
    directory.push("-live");
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

pub fn manual() -> (Arc<ManualClock>, SqliteOptions) {
    let clock = Arc::new(ManualClock::new());
    (Arc::clone(&clock), SqliteOptions::new().clock(clock))
}
