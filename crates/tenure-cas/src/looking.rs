//! Looking at elections without asking more than has to be asked.
//!
//! A term hangs on its holder's record, and so does the news about it: whoever
//! gives a term back raises `changes` there, and whoever asks something of a
//! holder raises its `attention`. So if the holder's record says neither, its
//! elections are as they were when they were last looked at, and one conditional
//! load of that record answers for all of them.

use std::collections::BTreeSet;

use tenure_core::{ElectionName, Incarnation, MemberId, Namespace};

use super::election::ElectionRecord;
use super::handle::Handle;
use super::member::MemberRecord;
use super::seen::Seen;
use tenure_store::{Error, ErrorKind, Result};

/// An election as it was found; `None` if it has no record.
pub(super) type Look = Option<Seen<ElectionRecord>>;

/// How often a holder's record is taken at its word before the election itself
/// is looked at again: what somebody does to it by hand is noticed in the end.
const TAKEN_AT_ITS_WORD: u32 = 32;

impl Handle {
    /// These elections, and the lives that their terms hang on, as they are now, as
    /// far as their holders tell: good enough for those who wait, since a bid is made
    /// on the version it saw.
    pub(super) async fn look_at(
        &self,
        ns: &Namespace,
        names: &[ElectionName],
    ) -> Result<Vec<Look>> {
        self.look(ns, names, false).await
    }

    /// The same, and no holder is taken at its word: for whoever decides by the
    /// answer. A holder that gave its term back says so a moment later, and by then
    /// the next may be elected.
    pub(super) async fn look_closely_at(
        &self,
        ns: &Namespace,
        names: &[ElectionName],
    ) -> Result<Vec<Look>> {
        self.look(ns, names, true).await
    }

    async fn look(
        &self,
        ns: &Namespace,
        names: &[ElectionName],
        closely: bool,
    ) -> Result<Vec<Look>> {
        let begun = self.step();
        let known = names.iter().filter_map(|name| self.known_holder(ns, name)).collect();
        first_of(self.look_at_holders(ns, known, begun).await)?;
        let looks = names.iter().map(|name| self.look_if_changed(ns, name, closely)).collect();
        let looks: Vec<Look> = self.all(looks).await.into_iter().collect::<Result<_>>()?;
        self.look_at_holders_of(ns, looks.iter().flatten(), begun).await?;
        Ok(looks)
    }

    /// As [`look_at`](Self::look_at), each on its own: what cannot be looked at is in
    /// nobody else's way.
    pub(super) async fn look_at_each(
        &self,
        ns: &Namespace,
        names: &[ElectionName],
    ) -> Vec<Result<Look>> {
        let begun = self.step();
        let known = names.iter().filter_map(|name| self.known_holder(ns, name)).collect();
        // A holder of whom nothing is heard is not taken at its word.
        let silent = self.look_at_holders(ns, known, begun).await;
        let looks = names.iter().map(|name| {
            let holder = self.known_holder(ns, name);
            let unheard = holder.is_some_and(|id| silent.iter().any(|(of, _)| *of == id));
            self.look_if_changed(ns, name, unheard)
        });
        let mut looks = self.all(looks.collect()).await;
        let held = looks.iter().flatten().flatten().filter_map(holder_of).collect();
        let silent = self.look_at_holders(ns, held, begun).await;
        for look in &mut looks {
            let Ok(Some(seen)) = look else { continue };
            let holder = holder_of(seen);
            match silent.iter().find(|(of, _)| Some(of) == holder.as_ref()) {
                Some((_, error)) => *look = Err(unheard(error)),
                None => self.note_missing(ns, &seen.record),
            }
        }
        looks
    }

    /// Looks at the lives that the terms of these hang on, unless that was done
    /// since the step `begun`.
    pub(super) async fn look_at_holders_of(
        &self,
        ns: &Namespace,
        elections: impl Iterator<Item = &Seen<ElectionRecord>> + Clone,
        begun: u64,
    ) -> Result<()> {
        let holders = elections.clone().filter_map(|seen| seen.record.holder.as_ref());
        let holders = holders.map(|holder| holder.member.clone()).collect();
        first_of(self.look_at_holders(ns, holders, begun).await)?;
        for seen in elections {
            self.note_missing(ns, &seen.record);
        }
        Ok(())
    }

    fn known_holder(&self, ns: &Namespace, name: &ElectionName) -> Option<MemberId> {
        let known = self.known::<ElectionRecord>(&self.keys.election(ns, name))?;
        known.record.holder.as_ref().map(|holder| holder.member.clone())
    }

    /// Gives those that could not be looked at, and why.
    async fn look_at_holders(
        &self,
        ns: &Namespace,
        holders: BTreeSet<MemberId>,
        begun: u64,
    ) -> Vec<(MemberId, Error)> {
        let keys = holders.into_iter().map(|id| (self.keys.member(ns, &id), id));
        let seen = |key: &str| self.known::<MemberRecord>(key).is_some_and(|s| s.step >= begun);
        let due: Vec<_> = keys.filter(|(key, _)| !seen(key)).collect();
        let loads = due.iter().map(|(key, _)| self.load::<MemberRecord>(key)).collect();
        let loads = self.all(loads).await.into_iter().zip(due);
        // A record that cannot be read proves nothing, and nobody can renew it.
        let failed = loads.filter_map(|(loaded, (_, id))| Some((id, loaded.err()?)));
        failed.filter(|(_, error)| error.kind() != ErrorKind::Foreign).collect()
    }

    /// The election; from memory, if its holder's record says that nothing
    /// happened to it, and that will do.
    async fn look_if_changed(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        closely: bool,
    ) -> Result<Look> {
        let key = self.keys.election(ns, name);
        if !closely
            && let Some(known) = self.known::<ElectionRecord>(&key)
            && let Some(holder) = &known.record.holder
            && let member = self.keys.member(ns, &holder.member)
            && self.is_unchanged(&key, &member, holder.incarnation)
        {
            return Ok(Some(known));
        }
        self.look_at_election(ns, &key).await
    }

    fn is_unchanged(&self, key: &str, member: &str, life: Incarnation) -> bool {
        self.memory().is_unchanged(key, member, life, TAKEN_AT_ITS_WORD)
    }

    /// The election itself.
    pub(super) async fn look_at_election(&self, ns: &Namespace, key: &str) -> Result<Look> {
        let begun = self.step();
        let look = self.load::<ElectionRecord>(key).await?;
        let holder = look.as_ref().and_then(|seen| seen.record.holder.as_ref());
        let mut memory = self.memory();
        match holder {
            Some(holder) => {
                let member = self.keys.member(ns, &holder.member);
                memory.unchanged_as_of(key, &member, begun);
            }
            None => memory.may_have_changed(key),
        }
        drop(memory);
        Ok(look)
    }

    /// Every election of the namespace that has a record. One that cannot be
    /// read is left out, so that it is in nobody else's way; asked for by name,
    /// it is an error. What their terms hang on is not looked at.
    pub(super) async fn load_elections(&self, ns: &Namespace) -> Result<Vec<Seen<ElectionRecord>>> {
        Ok(self.load_few_elections(ns, usize::MAX).await?.unwrap_or_default())
    }

    /// The same, if there are no more than so many: nothing that is only tidying up
    /// looks at more (M5).
    pub(super) async fn load_few_elections(
        &self,
        ns: &Namespace,
        most: usize,
    ) -> Result<Option<Vec<Seen<ElectionRecord>>>> {
        let prefix = self.keys.elections(ns);
        let sent = self.now();
        let mut listed = self.register.list(&prefix).await?;
        listed.retain(|listed| self.keys.election_of(ns, &listed.key).is_some());
        if listed.len() > most {
            return Ok(None);
        }
        listed.sort_by(|a, b| a.key.cmp(&b.key));
        let loads = listed.iter().map(|listed| self.load_listed(listed, sent)).collect();
        let loads: Vec<Result<Look>> = self.all(loads).await;
        let keys = listed.into_iter().map(|listed| listed.key).collect();
        self.memory().elections.keep(&prefix, &keys);
        let readable = loads.into_iter().filter(|loaded| !is_foreign(loaded));
        readable.filter_map(Result::transpose).collect::<Result<_>>().map(Some)
    }
}

fn holder_of(seen: &Seen<ElectionRecord>) -> Option<MemberId> {
    seen.record.holder.as_ref().map(|holder| holder.member.clone())
}

fn first_of(failed: Vec<(MemberId, Error)>) -> Result<()> {
    failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

/// The same for each of the elections that hang on one life.
fn unheard(error: &Error) -> Error {
    Error::new(error.kind(), format!("the holder could not be looked at: {error}"))
}

fn is_foreign<T>(loaded: &Result<T>) -> bool {
    loaded.as_ref().is_err_and(|error| error.kind() == ErrorKind::Foreign)
}
