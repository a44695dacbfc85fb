//! Names, as `tenure names` and `tenure lookup` answer.

use serde::{Deserialize, Serialize};
use tenure_core::{Binding, MemberRef, Rev};

use crate::{Metadata, Moment, millis};

/// A name that is bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundName {
    /// The name.
    pub name: String,
    /// The fencing token.
    pub token: u64,
    /// The revision of its last change.
    pub rev: u64,
    /// The id of the member that owns it; `null` if it has none.
    pub owner: Option<String>,
    /// Which life of that member.
    pub incarnation: Option<String>,
    /// Where it is served.
    pub endpoint: Option<String>,
    /// The pairs that it is found by.
    pub index: Vec<(String, String)>,
    /// The application's own bytes.
    pub data: Metadata,
    /// When it was taken, by the store's clock.
    pub bound_at: Moment,
    /// What is left of the owner's ttl.
    pub expires_in_ms: u64,
}

/// The answer of `tenure names`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundNames {
    /// The namespace.
    pub namespace: String,
    /// The revision that the answer reflects.
    pub rev: u64,
    /// The names.
    pub names: Vec<BoundName>,
}

impl From<&Binding> for BoundName {
    fn from(binding: &Binding) -> Self {
        let owner = binding.owner.as_ref();
        Self {
            name: binding.name.to_string(),
            token: binding.token.get(),
            rev: binding.rev.get(),
            owner: owner.map(|owner| owner.id.to_string()),
            incarnation: owner.map(|owner| owner.incarnation.to_string()),
            endpoint: binding.value.endpoint().map(String::from),
            index: binding.value.index().to_vec(),
            data: Metadata::of(binding.value.data()),
            bound_at: binding.bound_at.into(),
            expires_in_ms: millis(binding.remaining),
        }
    }
}

/// What became of a name, as `tenure watch --names` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameNews {
    /// It is bound, with or without an owner; at the beginning, or anew.
    Bound,
    /// Its value changed; the owner and the token are the same.
    Changed,
    /// It is free: it was dropped, or its owner is gone.
    Free,
}

/// One line of `tenure watch --names`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameChange {
    /// The revision up to which the names are known: `--from` goes on there.
    pub rev: u64,
    /// The name.
    pub name: String,
    /// What became of it.
    pub what: NameNews,
    /// The binding, if there is one.
    pub binding: Option<BoundName>,
}

/// The line with which `tenure watch --names` begins when it resumes: a name whose owner is
/// none of these is free, although no line says so.
///
/// ```
/// use tenure_api::NameOwners;
/// use tenure_core::{Incarnation, MemberId, MemberRef, Rev};
///
/// let life = MemberRef::new(MemberId::new("web-1").unwrap(), Incarnation::from_u128(1));
/// let line = NameOwners::new(Rev::new(7), &[life]);
/// assert_eq!((line.rev, &*line.owners[0].owner), (7, "web-1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOwners {
    /// The revision at which they were the owners.
    pub rev: u64,
    /// Every life that owns a name of the namespace.
    pub owners: Vec<NameOwner>,
}

/// One life that owns names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOwner {
    /// The member's id.
    pub owner: String,
    /// Which life of that member.
    pub incarnation: String,
}

impl NameOwners {
    /// The lives that own names at a revision.
    #[must_use]
    pub fn new(rev: Rev, lives: &[MemberRef]) -> Self {
        let owner = |life: &MemberRef| NameOwner {
            owner: life.id.to_string(),
            incarnation: life.incarnation.to_string(),
        };
        Self { rev: rev.get(), owners: lives.iter().map(owner).collect() }
    }
}
