//! Names that are bound: who owns one, under which token, with which value.
//!
//! A **binding** gives a [`Name`] to one life of a member, or keeps it without an owner. Its
//! **token** is the revision at which it was taken. Tokens and revisions of a namespace only rise
//! and are never used again, so that a name which is dropped leaves nothing behind.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{BadName, Era, MAX_ENDPOINT, MemberRef, Name, Timestamp, names};

/// The most pairs in the index of one value.
pub const MAX_INDEX: usize = 8;
/// The longest key or text in the index of a value, in bytes.
pub const MAX_INDEX_TEXT: usize = 200;
/// The most data in the value of a name that a life owns, in bytes.
pub const MAX_VALUE: usize = 4096;
/// The most data in the value of a name that has no owner, in bytes.
pub const MAX_NOTICE: usize = 65_536;

macro_rules! number {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(u64);

        impl $type {
            /// The one with this number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The number of one binding: **the fencing token** of a name. Each owner of a name
    /// gets a higher one than every owner before it, and none is ever used again.
    ///
    /// ```
    /// use tenure_core::Token;
    /// assert!(Token::new(7) < Token::new(8));
    /// ```
    Token
}

number! {
    /// A revision of a namespace's names. Every change of a name has one of its own.
    ///
    /// ```
    /// use tenure_core::Rev;
    /// assert_eq!(Rev::START, Rev::new(0));
    /// ```
    Rev
}

impl Rev {
    /// Before the first change.
    pub const START: Rev = Rev(0);

    /// The revision that a store has reached in this era, if its last change had this one and
    /// was made in era `given_in`. It is above everything that an earlier era may have given
    /// out, also before anything is changed in the new one (rule M6).
    #[must_use]
    pub fn reached(self, given_in: u64, era: Era) -> Self {
        if era.count() == given_in { self } else { Self(era.after(self.0, given_in)) }
    }

    /// The revision that follows.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The token of a name that is taken at this revision.
    #[must_use]
    pub const fn token(self) -> Token {
        Token(self.0)
    }
}

/// What is published with a name: where its owner serves it, pairs to find it by, and
/// opaque bytes of the application's own. Every reader gets them back byte for byte.
///
/// ```
/// use tenure_core::Value;
///
/// let value = Value::at("10.0.0.7:9000")?.with_index([("role", "worker")])?.with_data(b"v2")?;
/// assert_eq!(value.endpoint(), Some("10.0.0.7:9000"));
/// assert_eq!(value.index(), [("role".into(), "worker".into())]);
/// assert_eq!(value.data(), b"v2");
/// # Ok::<(), tenure_core::BadName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Value {
    endpoint: Option<Arc<str>>,
    index: Arc<[(String, String)]>,
    data: Arc<[u8]>,
}

impl Value {
    /// A value that says nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A value that says where the name is served.
    pub fn at(endpoint: impl AsRef<str>) -> Result<Self, BadName> {
        Self::empty().with_endpoint(endpoint)
    }

    /// With this endpoint.
    pub fn with_endpoint(self, endpoint: impl AsRef<str>) -> Result<Self, BadName> {
        let endpoint = endpoint.as_ref();
        names::check("the endpoint", endpoint, MAX_ENDPOINT)?;
        Ok(Self { endpoint: Some(endpoint.into()), ..self })
    }

    /// With these pairs of key and text, sorted by key. A key may be given once.
    pub fn with_index<K: AsRef<str>, T: AsRef<str>>(
        self,
        pairs: impl IntoIterator<Item = (K, T)>,
    ) -> Result<Self, BadName> {
        let owned = |(key, text): (K, T)| (key.as_ref().to_string(), text.as_ref().to_string());
        let mut index: Vec<(String, String)> = pairs.into_iter().map(owned).collect();
        index.sort();
        if index.len() > MAX_INDEX {
            return Err(BadName::too_many("index pair", index.len(), MAX_INDEX));
        }
        for (key, text) in &index {
            names::check("the index key", key, MAX_INDEX_TEXT)?;
            names::check("the index text", text, MAX_INDEX_TEXT)?;
        }
        if let Some(twice) = index.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(BadName::repeated("the index key", &twice[0].0));
        }
        Ok(Self { index: index.into(), ..self })
    }

    /// With these bytes. [`MAX_NOTICE`] of them at most; a name that a life owns has
    /// [`MAX_VALUE`] at most, which is checked when it is bound.
    pub fn with_data(self, data: impl AsRef<[u8]>) -> Result<Self, BadName> {
        let data = data.as_ref();
        if data.len() > MAX_NOTICE {
            return Err(BadName::too_long("the data of the value", data.len(), MAX_NOTICE));
        }
        Ok(Self { data: data.into(), ..self })
    }

    /// Where the name is served.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// The pairs to find it by, sorted by key.
    #[must_use]
    pub fn index(&self) -> &[(String, String)] {
        &self.index
    }

    /// The application's own bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Whether the index has this very pair.
    #[must_use]
    pub fn has(&self, key: &str, text: &str) -> bool {
        self.index.iter().any(|(k, t)| k == key && t == text)
    }
}

/// A name as it is bound at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The name.
    pub name: Name,
    /// The fencing token: the revision at which it was taken.
    pub token: Token,
    /// The revision of its last change.
    pub rev: Rev,
    /// Which life of which member owns it; `None` if it has no owner.
    pub owner: Option<MemberRef>,
    /// What is published with it.
    pub value: Value,
    /// What is left of the owner's ttl, counted like
    /// [`Holder::remaining`](crate::Holder::remaining). Zero if it has no owner.
    pub remaining: Duration,
    /// When it was taken, by the store's wall clock; for people.
    pub bound_at: Timestamp,
}

/// Which names to read. All of an answer is of one moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhichNames {
    /// These. One that is not bound is left out.
    Named(Vec<Name>),
    /// Those that begin with this text; with none, all of them.
    Prefix(String),
    /// Those that this life owns.
    OwnedBy(MemberRef),
    /// Those that changed after this revision, as they stand now, with the names that are
    /// gone and the lives that own names.
    Since(Rev),
}

/// The names that were asked for, as they stood at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct NamesView {
    /// The revision that the answer reflects: everything up to it, and nothing after it.
    pub rev: Rev,
    /// The bindings, by name. A binding whose owner is not live is left out: it is void, or
    /// will be when a member takes the name.
    pub bindings: Vec<Binding>,
    /// For [`WhichNames::Since`]: names that were dropped after that revision and are not
    /// bound now.
    pub gone: Vec<Name>,
    /// For [`WhichNames::Since`]: every live owner, with what is left of its ttl. A name of
    /// any other life is gone, although no change of the name says so: that is how the end of
    /// a life costs the same whatever it owns (rule M5).
    pub owners: Vec<(MemberRef, Duration)>,
    /// For [`WhichNames::Since`]: whether these are all names, because the store can no
    /// longer tell what changed after that revision. Forget what was known before.
    pub whole: bool,
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use super::*;

    #[test]
    fn values_are_refused_above_their_bounds_with_the_reason() {
        let pairs = |count: usize| (0..count).map(|n| (format!("k{n}"), "v")).collect::<Vec<_>>();
        assert_eq!(Value::empty().with_index(pairs(MAX_INDEX)).unwrap().index().len(), MAX_INDEX);
        let many = Value::empty().with_index(pairs(MAX_INDEX + 1)).unwrap_err().to_string();
        assert!(many.contains("9 index pairs") && many.contains("limit is 8"), "{many}");
        let twice = Value::empty().with_index([("k", "a"), ("k", "b")]).unwrap_err().to_string();
        assert!(twice.contains("the index key \"k\" is given twice"), "{twice}");
        let long = Value::empty().with_index([("k", "x".repeat(MAX_INDEX_TEXT + 1))]).unwrap_err();
        assert!(format!("{long}").contains("201 bytes"), "{long}");
        assert!(Value::empty().with_data(vec![0; MAX_NOTICE]).is_ok());
        let big = Value::empty().with_data(vec![0; MAX_NOTICE + 1]).unwrap_err().to_string();
        assert!(big.contains("65537 bytes"), "{big}");
        assert!(Value::at("").is_err());
    }

    #[test]
    fn an_index_is_sorted_and_found_by_its_pairs() {
        let value = Value::empty().with_index([("z", "1"), ("a", "2")]).unwrap();
        assert_eq!(value.index()[0].0, "a");
        assert!(value.has("z", "1") && !value.has("z", "2") && !value.has("1", "z"));
    }

    /// M6: readers see the jump of a new era before anything is written in it.
    #[test]
    fn a_new_era_is_a_new_revision_before_anything_changes() {
        let era = Era::START.raised(Timestamp::from_unix_millis(1_767_225_601_000));
        let reached = Rev::new(5).reached(0, era);
        assert_eq!(reached.get(), 1_000_000);
        assert_eq!(reached.reached(era.count(), era), reached);
        assert_eq!(Rev::new(5).reached(0, Era::START), Rev::new(5));
    }
}
