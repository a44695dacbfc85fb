//! What a store can and cannot do, said honestly.

use std::fmt;
use std::time::Duration;

use tenure_core::{Bind, StoreTraits, WhichNames};

use crate::{Error, ErrorKind, Identity, Result};

/// Who decides that a holder's ttl has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Judge {
    /// The store, by its own clock, in the same atomic step as the claim.
    Store,
    /// The member that wants the term, by its own clock: the record has not changed
    /// for its ttl, widened by drift.
    Observer,
}

/// How [`follow`](crate::Store::follow) learns of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watch {
    /// The store says so within milliseconds.
    Native,
    /// The store is looked at this often.
    Polled(Duration),
}

/// In a word or two: `native`, `polled every 2s`.
impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Watch::Native => f.write_str("native"),
            Watch::Polled(every) => write!(f, "polled every {every:?}"),
        }
    }
}

/// What a store that keeps names can do with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NameTraits {
    /// Names can be changed under the fence of a term, in one step with the check.
    pub fenced: bool,
    /// What changed after a revision can be read: [`WhichNames::Since`](tenure_core::WhichNames).
    /// Where it cannot, the namespace has no revision: those of each name rise by themselves,
    /// and a view of names has [`Rev::START`](tenure_core::Rev::START).
    pub since: bool,
}

impl NameTraits {
    /// All of it.
    pub const ALL: NameTraits = NameTraits { fenced: true, since: true };

    /// Names are taken, changed, dropped and read, and that is all.
    pub const PLAIN: NameTraits = NameTraits { fenced: false, since: false };
}

/// What a store can and cannot do. The conformance suite checks what is claimed
/// and what is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The store's name, as in its URL.
    pub name: &'static str,
    /// Which store it is, by the number it was given at its installation: the same
    /// from every handle, another from every other store.
    pub identity: Identity,
    /// Who judges expiry.
    pub judge: Judge,
    /// How changes are followed.
    pub watch: Watch,
    /// Why the store does not notify of changes although it can, and what to do.
    pub polled_because: Option<&'static str>,
    /// There is a gap-free journal; otherwise `follow` gives bare hints and
    /// positions are zero.
    pub journal: bool,
    /// The token can be checked inside the caller's own transaction.
    pub transactional_fence: bool,
    /// A dead process of this host is known to be dead at once (rule M4).
    pub proof_of_death: bool,
    /// A release can elect the heir in the same step: see
    /// [`Release::confirm_within`](tenure_core::Release::confirm_within).
    pub elects_heirs: bool,
    /// The most bids, releases or changes of names in one request.
    pub batch: usize,
    /// What the store can do with names; `None` if it keeps none.
    pub names: Option<NameTraits>,
}

impl Capabilities {
    /// A store called `name` that judges by its own clock, keeps a journal and
    /// watches natively, without a transactional fence, proof of death, electing
    /// heirs, names or a number of its own. Change what is different.
    #[must_use]
    pub fn judging(name: &'static str) -> Self {
        Self {
            name,
            identity: Identity::unnumbered(name),
            judge: Judge::Store,
            watch: Watch::Native,
            polled_because: None,
            journal: true,
            transactional_fence: false,
            proof_of_death: false,
            elects_heirs: false,
            batch: 1_000,
            names: None,
        }
    }

    /// Refuses a request about more items than the batch limit.
    pub fn within_batch(&self, what: &str, count: usize) -> Result<()> {
        let limit = self.batch;
        if count <= limit {
            return Ok(());
        }
        let message = format!("{count} {what} in one request are more than the limit of {limit}");
        Err(Error::new(ErrorKind::Invalid, message).remedy("split the request"))
    }

    /// Refuses a [`Bind`] that no store can do, or that this one cannot.
    pub fn accepts(&self, bind: &Bind) -> Result<()> {
        let names = self.keeps_names()?;
        if bind.fence.is_some() && !names.fenced {
            return Err(self.without_fence());
        }
        bind.check().map_err(|bad| Error::new(ErrorKind::Invalid, bad.to_string()))?;
        self.within_batch("changes of names", bind.ops.len())
    }

    /// Refuses to read names in a way that this store cannot.
    pub fn reads(&self, which: &WhichNames) -> Result<()> {
        let names = self.keeps_names()?;
        if names.since || !matches!(which, WhichNames::Since(_)) {
            return Ok(());
        }
        let message = format!("the store {} cannot tell which names changed since", self.name);
        Err(Error::new(ErrorKind::Invalid, message).remedy("read all names, or those of a prefix"))
    }

    /// What the store can do with names; an error if it keeps none.
    pub fn keeps_names(&self) -> Result<NameTraits> {
        self.names.ok_or_else(|| self.without_names())
    }

    /// What a store that keeps no names answers.
    #[must_use]
    pub fn without_names(&self) -> Error {
        let message = format!("the store {} keeps no names", self.name);
        Error::new(ErrorKind::Invalid, message).remedy("use SQLite or PostgreSQL for names")
    }

    /// What a store that cannot change names under the fence of a term answers.
    #[must_use]
    pub fn without_fence(&self) -> Error {
        let message = format!("the store {} has no fence for names", self.name);
        let remedy = "use SQLite or PostgreSQL, or bind without the fence of a term";
        Error::new(ErrorKind::Invalid, message).remedy(remedy)
    }

    /// What of this the machine goes by.
    #[must_use]
    pub fn traits(&self) -> StoreTraits {
        StoreTraits {
            native_watch: self.watch == Watch::Native,
            batch: self.batch,
            in_steps: self.judge == Judge::Observer,
            elects_heirs: self.elects_heirs,
        }
    }
}
