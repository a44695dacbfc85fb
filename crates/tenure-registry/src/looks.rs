//! Names as they change, for programs that only look and are no members.
//!
//! # What could break it
//!
//! - **A change between the two questions that a resumed watch begins with.** What is there,
//!   with the lives that own it, is one answer of one moment. The other only tells which names
//!   are gone: one that is not there, and is gone since, was gone by then. Whatever changed
//!   after that moment is in the next look.
//! - **A name whose owner's life has ended between the revision and the first look.** The
//!   store does not write that down name by name (M5). So a watch that resumes begins with the lives that own
//!   names: a name that belonged to any other is gone.

use std::sync::Arc;

use tenure::Operator;
use tenure::naming::{Binding, NamesView, Rev, WhichNames};
use tenure::store::BootClock;

use crate::copy::{Copy, Delta, Entry, Meanwhile, Writer};
use crate::read::changed;
use crate::{Change, Found};

/// The names of a namespace that begin with a prefix, as they change from one look to the
/// next: what a [`Watch`](crate::Watch) is for a member, for an
/// [`Operator`]. The caller decides when to look. Names are whole here, with their scopes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure::Tenure;
/// use tenure::naming::Value;
/// use tenure_registry::{Change, NameLooks, Registry};
///
/// let names = Registry::open(&Tenure::connect("memory:looked-at").await?, "orders")?;
/// let mine = names.register("user/42", Value::empty()).await?;
///
/// let operator = Tenure::operate("memory:looked-at").await?;
/// let mut looks = NameLooks::new(&operator, "orders:")?;
/// let first = looks.look().await?;
/// assert!(matches!(&first[..], [Change::Resynced { names, .. }] if names.len() == 1));
///
/// mine.release().await?;
/// let next = looks.look().await?;
/// assert!(matches!(&next[..], [Change::Released { name, .. }] if name == "orders:user/42"));
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct NameLooks {
    operator: Operator,
    prefix: String,
    /// Where it is to begin.
    resume: Option<Rev>,
    has_begun: bool,
    copy: Arc<Copy>,
    writer: Writer,
}

impl NameLooks {
    /// Refused for a store that keeps no names, or cannot tell which names changed.
    pub fn new(operator: &Operator, prefix: &str) -> tenure::Result<Self> {
        operator.capabilities().reads(&WhichNames::Since(Rev::START))?;
        let copy = Arc::new(Copy::new());
        let writer = Writer::new(copy.clone());
        Ok(Self {
            operator: operator.clone(),
            prefix: prefix.to_owned(),
            resume: None,
            has_begun: false,
            copy,
            writer,
        })
    }

    /// Begins with what changed after this revision instead of all names:
    /// [`Change::Lives`] and the changes; [`Change::Resynced`] if the store can no longer tell.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::Tenure;
    /// use tenure::naming::Value;
    /// use tenure_registry::{Change, NameLooks, Registry};
    ///
    /// let names = Registry::open(&Tenure::connect("memory:resumed").await?, "orders")?;
    /// let old = names.register("old", Value::empty()).await?;
    /// let from = names.register("kept", Value::empty()).await?.rev();
    /// old.release().await?;
    ///
    /// let operator = Tenure::operate("memory:resumed").await?;
    /// let mut looks = NameLooks::new(&operator, "orders:")?.from(from);
    /// let changes = looks.look().await?;
    /// assert!(matches!(changes[0], Change::Lives { .. }));
    /// assert!(changes.iter().any(|change| {
    ///     matches!(change, Change::Released { name, .. } if name == "orders:old")
    /// }));
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn from(mut self, rev: Rev) -> Self {
        self.resume = Some(rev);
        self
    }

    /// Asks what changed since the last look. After an error the next look tells it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::Tenure;
    /// use tenure_registry::{Change, NameLooks};
    ///
    /// let operator = Tenure::operate("memory:").await?;
    /// let mut looks = NameLooks::new(&operator, "")?;
    /// assert!(matches!(&looks.look().await?[..], [Change::Resynced { .. }]));
    /// assert!(looks.look().await?.is_empty());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn look(&mut self) -> tenure::Result<Vec<Change>> {
        let asked = BootClock::read();
        let since = if self.has_begun { self.copy.stand().rev } else { Rev::START };
        let ask = |which| self.operator.names(which);
        let view = changed(ask, since, Rev::START, true, self.writer.answered()).await?;
        let resumed = match (self.has_begun, self.resume) {
            (false, Some(from)) => Some((from, ask(WhichNames::Since(from)).await?)),
            _ => None,
        };
        let lives = view.owners.iter().map(|(member, _)| member.clone()).collect();
        let deltas = self.writer.apply(self.wanted(view), asked, &Meanwhile::new());
        let rev = self.copy.stand().rev;
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(deltas.into_iter().map(|delta| told(delta, rev)).collect());
        }
        Ok(match resumed {
            Some((from, since)) if !since.whole => {
                let mut changes = vec![Change::Lives { lives, rev }];
                changes.extend(self.since(from, self.wanted(since), rev));
                changes
            }
            _ => vec![Change::Resynced { names: self.all(), rev }],
        })
    }

    /// The names, as of the last look, in order.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::Tenure;
    /// use tenure_registry::NameLooks;
    ///
    /// let mut looks = NameLooks::new(&Tenure::operate("memory:").await?, "")?;
    /// looks.look().await?;
    /// assert!(looks.all().is_empty());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn all(&self) -> Vec<Found> {
        let (entries, stand) = self.copy.select(|_| true);
        let mut names: Vec<_> = entries.into_iter().map(|e| found(e, stand.rev)).collect();
        names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        names
    }

    /// How many names there are, as of the last look, without going through them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::Tenure;
    /// use tenure_registry::NameLooks;
    ///
    /// let mut looks = NameLooks::new(&Tenure::operate("memory:").await?, "")?;
    /// looks.look().await?;
    /// assert_eq!(looks.count(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn count(&self) -> usize {
        self.copy.count()
    }

    /// A name that was found, with what is left of its owner's ttl now.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure::Tenure;
    /// use tenure::naming::Value;
    /// use tenure_registry::{NameLooks, Registry};
    ///
    /// let names = Registry::open(&Tenure::connect("memory:left").await?, "orders")?;
    /// let mine = names.register("user/42", Value::empty()).await?;
    /// let mut looks = NameLooks::new(&Tenure::operate("memory:left").await?, "")?;
    /// looks.look().await?;
    /// let binding = looks.binding(&looks.all()[0]);
    /// assert!(binding.token == mine.token() && !binding.remaining.is_zero());
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn binding(&self, found: &Found) -> Binding {
        found.binding_at(BootClock::read())
    }

    /// What is told of a name that changed after `from`, and of one that is gone since.
    fn since(&self, from: Rev, since: NamesView, rev: Rev) -> Vec<Change> {
        let gone = since.gone.into_iter().filter(|name| self.copy.get(name.as_str()).is_none());
        let gone = gone.map(|name| Change::Released { name: name.to_string(), token: None, rev });
        let (mut news, _) = self.copy.select(|entry| entry.rev > from);
        news.sort_by_key(|entry| entry.rev);
        let news = news.into_iter().map(|entry| {
            let is_new = entry.token.get() > from.get();
            told(Delta::Bound { entry, is_new }, rev)
        });
        gone.chain(news).collect()
    }

    /// What of an answer begins with the prefix. The owners are those of all names.
    fn wanted(&self, mut view: NamesView) -> NamesView {
        if !self.prefix.is_empty() {
            view.bindings.retain(|binding| binding.name.as_str().starts_with(&self.prefix));
            view.gone.retain(|name| name.as_str().starts_with(&self.prefix));
        }
        view
    }
}

fn found(entry: Arc<Entry>, rev: Rev) -> Found {
    Found::new(entry, rev, 0)
}

fn told(delta: Delta, rev: Rev) -> Change {
    match delta {
        Delta::Bound { entry, is_new: true } => Change::Registered(found(entry, rev)),
        Delta::Bound { entry, is_new: false } => Change::Changed(found(entry, rev)),
        Delta::Gone { name, token } => {
            Change::Released { name: name.to_string(), token: Some(token), rev }
        }
    }
}
