//! Loading elections, their holders and the members, and asking for no more than has
//! to be asked.
//!
//! A term hangs on its holder's record, and so does the news about it: a holder that
//! gives a term back raises `changes` there, and an operator that asks something of a
//! holder raises its `attention`. So if the holder's record says neither, its elections
//! are as they were when they were last loaded, and one conditional load of that record
//! answers for all of them.

use std::collections::BTreeSet;

use tenure_core::{ElectionName, MemberId, Mono, Namespace};
use tenure_store::{Error, ErrorKind, Result};

use crate::cells::Cells;
use crate::judge::{HangsOn, Judge};
use crate::keys::Keys;
use crate::record::Record;
use crate::record::candidacies::CandidaciesRecord;
use crate::record::election::{ElectionRecord, HolderRecord};
use crate::record::member::MemberRecord;
use crate::seen::Seen;

/// An election as it was found; `None` if it has no record.
pub(crate) type Found = Option<Seen<ElectionRecord>>;

/// How often an election is taken from memory because its holder's record is unchanged,
/// before it is loaded all the same: an election record that was changed by hand changes
/// no holder's record.
const FROM_MEMORY: u32 = 32;

/// When an election itself is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// If its holder's record has changed.
    Changed,
    /// In any case.
    Always,
}

/// Elections, holders and members as they are now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
    judge: Judge<'a>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { cells, ns, judge: Judge::new(cells, ns) }
    }
}

impl Reader<'_> {
    /// These elections and their holders. An election whose holder's record is
    /// unchanged is taken from memory: good enough for a candidate that waits, since a
    /// bid swaps the version that it saw.
    pub(crate) async fn load_changed(&self, names: &[ElectionName]) -> Result<Vec<Found>> {
        self.load_all(names, Load::Changed).await
    }

    /// These elections and their holders, none of them from memory: for a caller that
    /// decides by the answer. A holder that gives a term back writes that into its own
    /// record a moment later, and by then the next may be elected.
    pub(crate) async fn load_named(&self, names: &[ElectionName]) -> Result<Vec<Found>> {
        self.load_all(names, Load::Always).await
    }

    async fn load_all(&self, names: &[ElectionName], load: Load) -> Result<Vec<Found>> {
        let begun = self.cells.step();
        let known = names.iter().filter_map(|name| self.known_holder(name)).collect();
        first_of(self.load_holders(known, begun).await)?;
        let loads = names.iter().map(|name| self.load_one(name, load)).collect();
        let found: Vec<Found> = self.cells.all(loads).await.into_iter().collect::<Result<_>>()?;
        self.load_holders_of(found.iter().flatten(), begun).await?;
        Ok(found)
    }

    /// The election as the register has told it, if nothing of it or of its holder can have
    /// been missed. It may be out of date: whatever goes by it swaps its version.
    pub(crate) fn told(&self, name: &ElectionName) -> Option<Seen<ElectionRecord>> {
        let known = self.cells.known::<ElectionRecord>(&self.cells.keys.election(self.ns, name))?;
        let holder = known.record.holder.as_ref();
        let within = holder.map_or(self.cells.told_pace(), |holder| holder.ttl_ns);
        let since = self.cells.watched_since(self.ns, within)?;
        let is_told = |holder: &HolderRecord| {
            let key = self.cells.keys.member(self.ns, &holder.member);
            self.cells.known::<MemberRecord>(&key).is_some_and(|member| member.heard > since)
        };
        (known.heard > since && holder.is_none_or(is_told)).then_some(known)
    }

    /// Whether all members were listed since the register tells of their changes.
    fn are_members_told(&self) -> bool {
        let prefix = self.cells.keys.members(self.ns);
        let since = self.cells.watched_since(self.ns, self.cells.told_pace());
        let listed = self.cells.memory().listed_in(&prefix);
        since.zip(listed).is_some_and(|(since, listed)| listed > since)
    }

    /// Makes sure that the members are known as they are now, but for what the register is
    /// about to tell; or as they were after `then`. For choosing an heir, and for ranks.
    pub(crate) async fn know_members(&self, then: Mono) -> Result<()> {
        if self.are_members_told() {
            return Ok(());
        }
        self.refresh_members(then).await
    }

    /// As [`load_changed`](Self::load_changed), with an answer for each election: one
    /// that cannot be loaded does not fail the others. If the caller waits for all of them
    /// already, what the register has told will do.
    pub(crate) async fn load_each_changed(
        &self,
        names: &[ElectionName],
        waits: impl Fn(&ElectionName) -> bool,
    ) -> Vec<Result<Found>> {
        let told = names.iter().map(|name| waits(name).then(|| self.told(name)).flatten());
        if let Some(told) = told.map(|told| told.map(|seen| Ok(Some(seen)))).collect() {
            return told;
        }
        let begun = self.cells.step();
        let known = names.iter().filter_map(|name| self.known_holder(name)).collect();
        // Where the holder's record cannot be loaded, it cannot say that nothing changed.
        let failed = self.load_holders(known, begun).await;
        let loads = names.iter().map(|name| {
            let holder = self.known_holder(name);
            let unknown = holder.is_some_and(|id| failed.iter().any(|(of, _)| *of == id));
            self.load_one(name, if unknown { Load::Always } else { Load::Changed })
        });
        let mut found = self.cells.all(loads.collect()).await;
        let held = found.iter().flatten().flatten().filter_map(holder_of).collect();
        let failed = self.load_holders(held, begun).await;
        for election in &mut found {
            let Ok(Some(seen)) = election else { continue };
            let holder = holder_of(seen);
            match failed.iter().find(|(of, _)| Some(of) == holder.as_ref()) {
                Some((_, error)) => *election = Err(holder_not_loaded(error)),
                None => self.note_missing(seen),
            }
        }
        found
    }

    /// Loads the records of the holders of these elections, except those that were
    /// loaded since the step `begun`.
    pub(crate) async fn load_holders_of(
        &self,
        elections: impl Iterator<Item = &Seen<ElectionRecord>> + Clone,
        begun: u64,
    ) -> Result<()> {
        let holders = elections.clone().filter_map(|seen| seen.record.holder.as_ref());
        let holders = holders.map(|holder| holder.member.clone()).collect();
        first_of(self.load_holders(holders, begun).await)?;
        for seen in elections {
            self.note_missing(seen);
        }
        Ok(())
    }

    fn note_missing(&self, seen: &Seen<ElectionRecord>) {
        if let Some(holder) = &seen.record.holder {
            self.judge.note_missing(&holder.hangs_on());
        }
    }

    /// Loads the members' records that these hang on, except those that were loaded since
    /// the step `begun`; gives those that could not be loaded, and why.
    pub(crate) async fn load_lives(
        &self,
        on: impl Iterator<Item = HangsOn> + Clone,
        begun: u64,
    ) -> Vec<(MemberId, Error)> {
        let ids = on.clone().map(|on| on.life.id).collect();
        let failed = self.load_holders(ids, begun).await;
        on.for_each(|on| self.judge.note_missing(&on));
        failed
    }

    /// Notes that these elections were asked for by name: followers load those alone.
    pub(crate) fn remember_names(&self, names: &[ElectionName]) {
        let keys: Vec<_> =
            names.iter().map(|name| self.cells.keys.election(self.ns, name)).collect();
        self.cells.memory().named.extend(keys);
    }

    fn known_holder(&self, name: &ElectionName) -> Option<MemberId> {
        let known = self.cells.known::<ElectionRecord>(&self.cells.keys.election(self.ns, name))?;
        known.record.holder.as_ref().map(|holder| holder.member.clone())
    }

    /// Loads these members' records; gives those that could not be loaded, and why.
    async fn load_holders(
        &self,
        holders: BTreeSet<MemberId>,
        begun: u64,
    ) -> Vec<(MemberId, Error)> {
        let keys = holders.into_iter().map(|id| (self.cells.keys.member(self.ns, &id), id));
        let seen =
            |key: &str| self.cells.known::<MemberRecord>(key).is_some_and(|s| s.step >= begun);
        let due: Vec<_> = keys.filter(|(key, _)| !seen(key)).collect();
        let loads = due.iter().map(|(key, _)| self.cells.load::<MemberRecord>(key)).collect();
        let loads = self.cells.all(loads).await.into_iter().zip(due);
        // A record that cannot be read proves nothing, and no heartbeat can replace it.
        let failed = loads.filter_map(|(loaded, (_, id))| Some((id, loaded.err()?)));
        failed.filter(|(_, error)| error.kind() != ErrorKind::Foreign).collect()
    }

    /// The election; from memory, if its holder's record says that nothing happened to
    /// it. Not if it was paused: a resumption changes no holder's record, and a bid for
    /// what memory has as paused would not be made.
    async fn load_one(&self, name: &ElectionName, load: Load) -> Result<Found> {
        let key = self.cells.keys.election(self.ns, name);
        if load == Load::Changed
            && let Some(known) = self.cells.known::<ElectionRecord>(&key)
            && known.record.paused.is_none()
            && let Some(holder) = &known.record.holder
            && let member = self.cells.keys.member(self.ns, &holder.member)
            && self.cells.memory().is_unchanged(&key, &member, holder.incarnation, FROM_MEMORY)
        {
            return Ok(Some(known));
        }
        self.load_election(&key).await
    }

    /// The election itself.
    pub(crate) async fn load_election(&self, key: &str) -> Result<Found> {
        let begun = self.cells.step();
        let look = self.cells.load::<ElectionRecord>(key).await?;
        let holder = look.as_ref().and_then(|seen| seen.record.holder.as_ref());
        let mut memory = self.cells.memory();
        match holder {
            Some(holder) => {
                let member = self.cells.keys.member(self.ns, &holder.member);
                memory.unchanged_as_of(key, &member, begun);
            }
            None => memory.may_have_changed(key),
        }
        drop(memory);
        Ok(look)
    }

    /// Makes sure that the members were listed after `then`. Records that cannot be
    /// read are left out.
    pub(crate) async fn refresh_members(&self, then: Mono) -> Result<()> {
        let prefix = self.cells.keys.members(self.ns);
        let now = self.cells.now();
        if self.cells.memory().listed(&prefix).is_some_and(|listed| listed > then) {
            return Ok(());
        }
        self.refresh::<MemberRecord>(&prefix).await?;
        self.refresh::<CandidaciesRecord>(&self.cells.keys.standings(self.ns)).await?;
        let step = self.cells.step();
        self.cells.memory().note_listing(&prefix, now, step);
        Ok(())
    }

    async fn refresh<R: Record>(&self, prefix: &str) -> Result<()> {
        let sent = self.cells.now();
        let mut listed = self.cells.register.list(prefix).await?;
        listed.retain(|listed| Keys::is_member(prefix, &listed.key));
        let loads = listed.iter().map(|listed| self.cells.load_listed::<R>(listed, sent)).collect();
        for loaded in self.cells.all(loads).await {
            match loaded {
                Err(error) if error.kind() != ErrorKind::Foreign => return Err(error),
                _ => {}
            }
        }
        let keys: BTreeSet<String> = listed.into_iter().map(|listed| listed.key).collect();
        R::table(&mut self.cells.memory()).keep(prefix, &keys);
        Ok(())
    }

    /// Every election of the namespace that has a record, without their holders. A
    /// record that cannot be read is left out, so that it does not fail the others;
    /// asked for by name, it is an error.
    pub(crate) async fn load_every_election(&self) -> Result<Vec<Seen<ElectionRecord>>> {
        Ok(self.load_up_to(usize::MAX).await?.unwrap_or_default())
    }

    /// Every election, or `None` if there are more than `most`: clean-up loads no more
    /// than a bounded number (M5).
    pub(crate) async fn load_up_to(
        &self,
        most: usize,
    ) -> Result<Option<Vec<Seen<ElectionRecord>>>> {
        let prefix = self.cells.keys.elections(self.ns);
        let sent = self.cells.now();
        let mut listed = self.cells.register.list(&prefix).await?;
        listed.retain(|listed| self.cells.keys.election_of(self.ns, &listed.key).is_some());
        if listed.len() > most {
            return Ok(None);
        }
        listed.sort_by(|a, b| a.key.cmp(&b.key));
        let loads = listed.iter().map(|listed| self.cells.load_listed(listed, sent)).collect();
        let loads: Vec<Result<Found>> = self.cells.all(loads).await;
        let keys = listed.into_iter().map(|listed| listed.key).collect();
        self.cells.memory().elections.keep(&prefix, &keys);
        let readable = loads.into_iter().filter(|loaded| !is_foreign(loaded));
        readable.filter_map(Result::transpose).collect::<Result<_>>().map(Some)
    }
}

fn holder_of(seen: &Seen<ElectionRecord>) -> Option<MemberId> {
    seen.record.holder.as_ref().map(|holder| holder.member.clone())
}

pub(crate) fn first_of(failed: Vec<(MemberId, Error)>) -> Result<()> {
    failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

/// The error of a holder's record, once for each of its elections.
pub(crate) fn holder_not_loaded(error: &Error) -> Error {
    Error::new(error.kind(), format!("the holder's record could not be loaded: {error}"))
}

pub(crate) fn is_foreign<T>(loaded: &Result<T>) -> bool {
    loaded.as_ref().is_err_and(|error| error.kind() == ErrorKind::Foreign)
}
