//! What a register tells by itself, and what an observer may conclude of it.
//!
//! Where the register has a watch, an observer learns within milliseconds that an election
//! became vacant or that a member beat, and asks for no more than it must. What could go
//! wrong, and what becomes of it:
//!
//! - **A change arrives late**, after a look that found a newer record. Of one cell and life
//!   the record that was written fewer times is the older: it is passed over, and what is
//!   known never goes back (N3). The same holds of what a listing shows, and of a look where
//!   the service may answer it from a copy that lags
//!   ([`CasOptions::looks_lag`](crate::CasOptions::looks_lag)).
//! - **A change of another life.** Counts of two lives do not compare: a newcomer goes on
//!   with the count of the record that it replaced, and begins anew where there was none. So
//!   the change only causes a look.
//! - **A removal that arrives late**, when the record has been made anew. It causes a look as
//!   well.
//! - **A record that was put back by hand** has a lower count. A look that cannot lag shows
//!   it, and a holder looks at its own elections about once in a ttl. Where looks may lag it
//!   would be passed over for ever, but a swap of what is known conflicts with it; the look
//!   after that is believed, whatever it finds.
//! - **A beat is told late.** Its arrival is an upper bound of when the beat began, as that of
//!   an answer is, and the observer waits longer than it must. It is never a lower bound: a
//!   change is no look, so that no member is known to be silent because nothing was told.
//! - **The watch died in silence**: its connection is open and nothing comes. What this
//!   observer writes itself is told too, so that a watch that does not tell a heartbeat of
//!   its own is begun anew. Looks are left out only while something was told within a ttl.
//! - **Something is written while the watch is being connected.** The first change told is
//!   that all may have been missed, and then everything is looked at. That look comes after
//!   the watch is there, so that what it does not see is told.
//! - **A claim, a release or an end goes by what was told, and that is out of date.** Each
//!   swaps the version that it judged: it conflicts, and looks.

use std::sync::Arc;

use tenure_core::{ElectionName, Incarnation, Namespace};
use tenure_store::{ErrorKind, Result};

use crate::cells::Cells;
use crate::keys::Keys;
use crate::record::Record;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::register::{Change, Version, Watching};

/// What a change amounts to.
#[derive(Debug)]
pub(crate) enum News {
    /// Everything may have changed.
    Everything,
    /// This election may have.
    Election(ElectionName),
    /// What hangs on this life may have.
    Life(Incarnation),
    /// Nothing that others are told.
    Nothing,
}

/// What a cell holds, by its key.
enum Kind {
    Election(ElectionName),
    Member,
    Candidacies,
    Other,
}

/// The watch of one namespace, which feeds what its observer knows.
#[derive(Debug)]
pub(crate) struct Telling {
    cells: Arc<Cells>,
    ns: Namespace,
    watching: Option<Box<dyn Watching>>,
    /// A cell that only a look can tell the state of.
    look: Option<String>,
}

impl Telling {
    pub(crate) fn new(cells: Arc<Cells>, ns: Namespace) -> Self {
        let mut telling = Self { cells, ns, watching: None, look: None };
        telling.begin_anew();
        telling
    }

    /// Whether the register tells of changes at all.
    pub(crate) fn is_there(&self) -> bool {
        self.watching.is_some()
    }

    /// What comes next. Without a watch nothing ever does. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<News> {
        loop {
            if let Some(key) = self.look.clone() {
                let news = self.look_at(&key).await?;
                self.look = None;
                return Ok(news);
            }
            let Some(watching) = &mut self.watching else { return std::future::pending().await };
            let change = watching.next().await;
            let prefix = self.cells.keys.namespace(&self.ns);
            if change.is_err() {
                self.cells.memory().watch_ended(&prefix);
            }
            let now = self.cells.now();
            match change? {
                Change::Lost => {
                    let step = self.cells.step();
                    self.cells.memory().watch_began(&prefix, now, step);
                    return Ok(News::Everything);
                }
                Change::Gone { key } => self.look = Some(key),
                Change::Put { key, version, bytes } => {
                    self.cells.memory().watch_told(&prefix, now);
                    match self.put(&key, version, bytes.as_deref())? {
                        Some(news) => return Ok(news),
                        None => self.look = Some(key),
                    }
                }
            }
        }
    }

    /// Begins anew if a heartbeat of this observer's own was written and not told: the watch
    /// may have died in silence.
    pub(crate) fn check(&mut self) {
        let prefix = self.cells.keys.namespace(&self.ns);
        let members = self.cells.keys.members(&self.ns);
        let grace = self.cells.options.poll;
        let now = self.cells.now();
        if self.is_there() && self.cells.memory().wrote_untold(&prefix, &members, now, grace) {
            self.begin_anew();
        }
    }

    fn begin_anew(&mut self) {
        let keys = &self.cells.keys;
        keys_ended(&self.cells, &self.ns);
        let prefixes = [keys.elections(&self.ns), keys.members(&self.ns), keys.standings(&self.ns)];
        self.watching = self.cells.register.watch(&prefixes);
    }

    fn kind(&self, key: &str) -> Kind {
        let keys = &self.cells.keys;
        if let Some(election) = keys.election_of(&self.ns, key) {
            return Kind::Election(election);
        }
        if Keys::is_member(&keys.members(&self.ns), key) {
            return Kind::Member;
        }
        if Keys::is_member(&keys.standings(&self.ns), key) {
            return Kind::Candidacies;
        }
        Kind::Other
    }

    /// Notes a cell that was stored; `None` if it has to be looked at.
    fn put(&self, key: &str, version: Version, bytes: Option<&[u8]>) -> Result<Option<News>> {
        let kind = self.kind(key);
        let Some(bytes) = bytes else {
            return Ok(matches!(kind, Kind::Other).then_some(News::Nothing));
        };
        let noted = match kind {
            Kind::Other => Ok(Some(News::Nothing)),
            // One that is followed by no caller is not kept: there may be very many.
            Kind::Election(name) if self.is_passed_over(key) => Ok(Some(News::Election(name))),
            Kind::Election(name) => {
                self.note::<ElectionRecord>(key, version, bytes, |_| News::Election(name))
            }
            Kind::Member => self.note(key, version, bytes, news_of),
            Kind::Candidacies => {
                self.note::<CandidaciesRecord>(key, version, bytes, |_| News::Nothing)
            }
        };
        match noted {
            // As in a listing: asked for by name, it is an error there.
            Err(error) if error.kind() == ErrorKind::Foreign => Ok(Some(News::Nothing)),
            noted => noted,
        }
    }

    /// Notes a record; `None` if only a look can tell whether it is the newer one.
    fn note<R: Record>(
        &self,
        key: &str,
        version: Version,
        bytes: &[u8],
        news: impl FnOnce(&R) -> News,
    ) -> Result<Option<News>> {
        let seen = self.cells.told::<R>(key, version, bytes)?;
        Ok(seen.map(|seen| news(&seen.record)))
    }

    /// Whether this observer was asked for elections by name, and not for this one.
    pub(crate) fn is_passed_over(&self, key: &str) -> bool {
        let prefix = self.cells.keys.elections(&self.ns);
        let memory = self.cells.memory();
        let any =
            memory.named.range(prefix.clone()..).next().is_some_and(|k| k.starts_with(&prefix));
        any && !memory.named.contains(key)
    }

    async fn look_at(&self, key: &str) -> Result<News> {
        let found = match self.kind(key) {
            Kind::Other => return Ok(News::Nothing),
            Kind::Election(name) => {
                self.cells.load::<ElectionRecord>(key).await.map(|_| News::Election(name))
            }
            Kind::Member => {
                let before = self.cells.known::<MemberRecord>(key);
                let found = self.cells.load::<MemberRecord>(key).await;
                found.map(|_| before.map_or(News::Nothing, |b| News::Life(b.record.incarnation)))
            }
            Kind::Candidacies => {
                self.cells.load::<CandidaciesRecord>(key).await.map(|_| News::Nothing)
            }
        };
        match found {
            Err(error) if error.kind() == ErrorKind::Foreign => Ok(News::Nothing),
            found => found,
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        keys_ended(&self.cells, &self.ns);
    }
}

/// Nothing is told of the namespace from now on.
fn keys_ended(cells: &Cells, ns: &Namespace) {
    cells.memory().watch_ended(&cells.keys.namespace(ns));
}

/// A heartbeat is no news; the end of a life is.
fn news_of(record: &MemberRecord) -> News {
    if record.ended.is_some() { News::Life(record.incarnation) } else { News::Nothing }
}
