//! The copy of a namespace's names that lookups read: who owns what, at one revision.
//!
//! One task writes it, and all callers read it without a lock. A reader gets the whole of one
//! answer or nothing of it, because a new root takes the place of the old one in one step
//! (R3). Names lie in shards, so that a change copies a shard and not the whole.
//!
//! # What must stay true
//!
//! - The copy at revision r equals the store at r, and beside it has this process's own
//!   registrations, which may be newer (R1).
//! - The revision never goes back (R2). A store that was rolled back answers with all names
//!   and an older revision: its names are taken, and the copy's revision stays, so that the
//!   store gives all names again until it has passed it.
//! - A life that is gone takes all of its names with it in one step, and no others (R4).
//! - A binding takes the place of an older one only. What the store answers late never takes
//!   the place of something newer.
//! - Names that vanished because the store could not be asked (R5) are not told again as
//!   changes: from then on the copy is [`Writer::is_partial`], and all names have to be read.
//! - What this process says of its own names counts only above the revision that the store
//!   has answered with: up to there the answer has said all, also that a name is gone.

mod shard;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tenure::naming::{Binding, Name, NamesView, Rev, Token, Value};
use tenure::views::{Incarnation, MemberRef};
use tenure::{Mono, Timestamp};

use shard::Shard;
pub(crate) use shard::pair;

/// How many shards: a power of two. A change copies one of them.
const SHARDS: usize = 1024;

/// One name, as the copy has it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) token: Token,
    pub(crate) rev: Rev,
    pub(crate) value: Value,
    pub(crate) bound_at: Timestamp,
    /// `None` if it has no owner.
    pub(crate) owner: Option<Arc<Owner>>,
}

/// One life that owns names.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) member: MemberRef,
    until: AtomicU64,
}

impl Owner {
    /// When its ttl has run out, counted on this process's clock.
    pub(crate) fn until(&self) -> Mono {
        Mono::from_nanos(self.until.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
struct Root {
    rev: Rev,
    /// Rises with every change of the copy, also where the revision does not.
    version: u64,
    shards: Box<[Arc<Shard>]>,
}

/// What lookups read.
#[derive(Debug)]
pub(crate) struct Copy {
    root: ArcSwap<Root>,
    hash: RandomState,
}

/// A change of the copy, as watchers are told of it.
#[derive(Clone, Debug)]
pub(crate) enum Delta {
    Bound { entry: Arc<Entry>, is_new: bool },
    Gone { name: Name, token: Token },
}

impl Delta {
    pub(crate) fn name(&self) -> &Name {
        match self {
            Delta::Bound { entry, .. } => &entry.name,
            Delta::Gone { name, .. } => name,
        }
    }
}

/// Where the copy stood when something was read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    pub(crate) rev: Rev,
    pub(crate) version: u64,
}

impl Copy {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Arc::default()).collect();
        Self {
            root: ArcSwap::from_pointee(Root { rev: Rev::START, version: 0, shards }),
            hash: RandomState::new(),
        }
    }

    /// Where it stands.
    pub(crate) fn stand(&self) -> Stand {
        self.root.load().stand()
    }

    /// A name, without a lock or an allocation.
    pub(crate) fn get(&self, name: &str) -> Option<(Arc<Entry>, Rev)> {
        let root = self.root.load();
        let entry = root.shards[self.shard(name)].get(name)?;
        Some((entry.clone(), root.rev))
    }

    /// How many names there are.
    pub(crate) fn count(&self) -> usize {
        self.root.load().shards.iter().map(|shard| shard.len()).sum()
    }

    /// These names, all of one moment.
    pub(crate) fn get_all<'a>(
        &self,
        names: impl Iterator<Item = &'a Name>,
    ) -> Vec<(&'a Name, Option<Arc<Entry>>)> {
        let root = self.root.load();
        let get = |name: &'a Name| {
            (name, root.shards[self.shard(name.as_str())].get(name.as_str()).cloned())
        };
        names.map(get).collect()
    }

    /// Every name that the caller wants.
    pub(crate) fn select(&self, wanted: impl Fn(&Entry) -> bool) -> (Vec<Arc<Entry>>, Stand) {
        let root = self.root.load();
        let all = root.shards.iter().flat_map(|shard| shard.entries());
        (all.filter(|entry| wanted(entry)).cloned().collect(), root.stand())
    }

    /// The names that have the rarest of these [pairs](pair) in their shard, and that the
    /// caller wants.
    pub(crate) fn query(
        &self,
        pairs: &[String],
        wanted: impl Fn(&Entry) -> bool,
    ) -> (Vec<Arc<Entry>>, Stand) {
        let root = self.root.load();
        let some = root.shards.iter().flat_map(|shard| shard.with_rarest(pairs));
        (some.filter(|entry| wanted(entry)).cloned().collect(), root.stand())
    }

    fn shard(&self, name: &str) -> usize {
        usize::try_from(self.hash.hash_one(name)).unwrap_or(usize::MAX) % SHARDS
    }
}

impl Root {
    fn stand(&self) -> Stand {
        Stand { rev: self.rev, version: self.version }
    }
}

/// A name that this process has given back.
#[derive(Debug)]
struct Released {
    token: Token,
    life: Option<Incarnation>,
    at: Mono,
}

/// The task that writes the copy.
#[derive(Debug)]
pub(crate) struct Writer {
    copy: Arc<Copy>,
    owners: HashMap<Incarnation, Arc<Owner>>,
    /// The lives that the newest answer named as owners. What is known of any other life
    /// this process said itself, and may be a part of what it owns.
    answered: HashSet<MemberRef>,
    /// The revision of the newest answer. After a rollback it is lower than the copy's.
    heard: Rev,
    /// What this process has given back, until the store's answers know of it: an answer that
    /// was on its way does not show it again.
    released: HashMap<Name, Released>,
    partial: bool,
}

/// What this process registered while a question was on its way.
pub(crate) type Meanwhile = HashMap<Name, Binding>;

impl Writer {
    pub(crate) fn new(copy: Arc<Copy>) -> Self {
        Self {
            copy,
            owners: HashMap::new(),
            answered: HashSet::new(),
            heard: Rev::START,
            released: HashMap::new(),
            partial: false,
        }
    }

    /// When the first owner's ttl has run out, on this process's clock.
    pub(crate) fn next_end(&self) -> Option<Mono> {
        self.next_end_after(Mono::ZERO)
    }

    /// The same, of those whose ttl runs out after this moment.
    pub(crate) fn next_end_after(&self, at: Mono) -> Option<Mono> {
        self.owners.values().map(|owner| owner.until()).filter(|end| *end > at).min()
    }

    /// Whether names are missing although the store did not say that they are gone.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial
    }

    /// The lives of which the copy has every name, unless it [is partial](Self::is_partial).
    pub(crate) fn answered(&self) -> &HashSet<MemberRef> {
        &self.answered
    }

    /// The lives that own names.
    pub(crate) fn lives(&self) -> Vec<MemberRef> {
        self.owners.values().map(|owner| owner.member.clone()).collect()
    }

    /// Takes in what the store answered to a question that was asked at `asked`, and says
    /// what changed. `meanwhile` is what this process registered after that, of which the
    /// answer may not know.
    pub(crate) fn apply(
        &mut self,
        mut view: NamesView,
        asked: Mono,
        meanwhile: &Meanwhile,
    ) -> Vec<Delta> {
        let before = self.copy.root.load_full();
        if view.rev < before.rev && !view.whole {
            // It was overtaken by a newer answer.
            return Vec::new();
        }
        self.pass_over_released(&mut view, asked);
        let is_news = |own: &&Binding| view.rev == Rev::START || own.rev > view.rev;
        let meanwhile: Vec<&Binding> = meanwhile.values().filter(is_news).collect();
        let gone = self.take_owners(&view, asked, &meanwhile);
        let mut changes = Changes::of(&self.copy, &before);
        changes.clear_away(&gone);
        if view.whole {
            // Above the answer's revision there is only what this process registered itself,
            // unless the store was rolled back or has no revision: then its word counts.
            let counts = view.rev < before.rev || view.rev == Rev::START;
            let newest = if counts { Rev::new(u64::MAX) } else { view.rev };
            changes.keep_only(&view, newest, &meanwhile);
            self.partial = false;
        }
        for name in &view.gone {
            changes.remove(name, view.rev);
        }
        for binding in view.bindings.into_iter().chain(meanwhile.into_iter().cloned()) {
            let owner = self.owner_of(&binding, asked);
            changes.insert(binding, owner);
        }
        self.heard = view.rev;
        self.answered = view.owners.into_iter().map(|(member, _)| member).collect();
        changes.publish(before.rev.max(view.rev))
    }

    /// Registrations of this process: they are seen here before the store is asked (R1).
    pub(crate) fn apply_own(&mut self, own: Vec<Binding>, asked: Mono) -> Vec<Delta> {
        // Up to the revision that was answered the copy has what there is. One that is not
        // there is over: its task told of it late.
        let heard = self.heard;
        let news = own.into_iter().filter(|own| heard == Rev::START || own.rev > heard);
        let with_owner = |binding: Binding| (self.owner_of(&binding, asked), binding);
        let own: Vec<_> = news.map(with_owner).collect();
        if own.is_empty() {
            return Vec::new();
        }
        self.change(|changes| {
            own.into_iter().for_each(|(owner, binding)| changes.insert(binding, owner));
        })
    }

    /// A name that this process has given back.
    pub(crate) fn drop_own(&mut self, name: &Name, token: Token, now: Mono) -> Vec<Delta> {
        let there = self.copy.get(name.as_str()).filter(|(entry, _)| entry.token == token);
        let owner = there.as_ref().and_then(|(entry, _)| entry.owner.as_ref());
        let life = owner.map(|owner| owner.member.incarnation);
        self.released.insert(name.clone(), Released { token, life, at: now });
        let Some((entry, _)) = there else { return Vec::new() };
        self.change(|changes| changes.remove(name, entry.rev))
    }

    /// The ttl of owners has run out, and the store could not be asked: they were not renewed
    /// as far as is known, so that their names vanish (R5).
    pub(crate) fn expire(&mut self, now: Mono) -> Vec<Delta> {
        let over = |owner: &&Arc<Owner>| owner.until() <= now;
        let ended: HashSet<_> =
            self.owners.values().filter(over).map(|owner| owner.member.incarnation).collect();
        if ended.is_empty() {
            return Vec::new();
        }
        self.partial = true;
        self.owners.retain(|life, _| !ended.contains(life));
        self.change(|changes| changes.clear_away(&ended))
    }

    /// Takes out of an answer what this process has given back since. What the answer knows
    /// to be over is done with, and so is what was given back before the question was asked
    /// and is not in the answer.
    fn pass_over_released(&mut self, view: &mut NamesView, asked: Mono) {
        if self.released.is_empty() {
            return;
        }
        let mut there = HashSet::new();
        view.bindings.retain(|binding| {
            let is = |released: &Released| released.token == binding.token;
            let is_released = self.released.get(&binding.name).is_some_and(is);
            if is_released {
                there.insert(binding.name.clone());
            }
            !is_released
        });
        let bound: HashMap<_, _> = view.bindings.iter().map(|b| (&b.name, b.token)).collect();
        let gone: HashSet<_> = view.gone.iter().collect();
        let lives: HashSet<_> = view.owners.iter().map(|(member, _)| member.incarnation).collect();
        self.released.retain(|name, Released { token, life, at }| {
            let is_over = gone.contains(name) && view.rev.get() > token.get()
                || bound.get(name).is_some_and(|newer| newer > token);
            let is_absent = view.whole && !there.contains(name)
                || gone.contains(name)
                || life.is_some_and(|life| !lives.contains(&life));
            !is_over && (*at >= asked || !is_absent)
        });
    }

    fn change(&mut self, with: impl FnOnce(&mut Changes)) -> Vec<Delta> {
        let before = self.copy.root.load_full();
        let mut changes = Changes::of(&self.copy, &before);
        with(&mut changes);
        changes.publish(before.rev)
    }

    /// Notes who lives, and says who is gone.
    fn take_owners(
        &mut self,
        view: &NamesView,
        asked: Mono,
        meanwhile: &[&Binding],
    ) -> HashSet<Incarnation> {
        for (member, remaining) in &view.owners {
            self.owner(member, *remaining, asked);
        }
        let own = meanwhile.iter().filter_map(|binding| binding.owner.as_ref());
        let lives: HashSet<_> = view.owners.iter().map(|(member, _)| member).chain(own).collect();
        let gone: HashSet<_> = self
            .owners
            .iter()
            .filter(|(_, owner)| !lives.contains(&owner.member))
            .map(|(life, _)| *life)
            .collect();
        self.owners.retain(|life, _| !gone.contains(life));
        gone
    }

    fn owner_of(&mut self, binding: &Binding, asked: Mono) -> Option<Arc<Owner>> {
        let member = binding.owner.as_ref()?;
        Some(self.owner(member, binding.remaining, asked))
    }

    fn owner(&mut self, member: &MemberRef, remaining: Duration, asked: Mono) -> Arc<Owner> {
        let owner = self.owners.entry(member.incarnation).or_insert_with(|| {
            Arc::new(Owner { member: member.clone(), until: AtomicU64::new(0) })
        });
        owner.until.fetch_max((asked + remaining).as_nanos(), Ordering::Relaxed);
        owner.clone()
    }
}

/// A new root in the making.
struct Changes {
    copy: Arc<Copy>,
    shards: Box<[Arc<Shard>]>,
    version: u64,
    log: Vec<Delta>,
    /// The last value of an owner: most owners publish one for all of their names.
    last: Option<(Arc<Owner>, Value)>,
}

impl Changes {
    fn of(copy: &Arc<Copy>, before: &Root) -> Self {
        let shards = before.shards.clone();
        let version = before.version + 1;
        Self { copy: copy.clone(), shards, version, log: Vec::new(), last: None }
    }

    fn publish(self, rev: Rev) -> Vec<Delta> {
        let Self { copy, shards, version, log, .. } = self;
        copy.root.store(Arc::new(Root { rev, version, shards }));
        log
    }

    /// The same value, in the memory that another name of this owner has it in.
    fn shared(&mut self, value: Value, owner: Option<&Arc<Owner>>) -> Value {
        let Some(owner) = owner else { return value };
        match &self.last {
            Some((of, last)) if Arc::ptr_eq(of, owner) && *last == value => last.clone(),
            _ => {
                self.last = Some((owner.clone(), value.clone()));
                value
            }
        }
    }

    fn at(&self, name: &Name) -> usize {
        self.copy.shard(name.as_str())
    }

    fn insert(&mut self, binding: Binding, owner: Option<Arc<Owner>>) {
        let at = self.at(&binding.name);
        let older = self.shards[at].get(binding.name.as_str());
        if older.is_some_and(|older| older.rev >= binding.rev) {
            return;
        }
        let is_new = older.is_none_or(|older| older.token != binding.token);
        let Binding { name, token, rev, value, bound_at, .. } = binding;
        let value = self.shared(value, owner.as_ref());
        let entry = Arc::new(Entry { name, token, rev, value, bound_at, owner });
        Arc::make_mut(&mut self.shards[at]).put(entry.clone());
        self.log.push(Delta::Bound { entry, is_new });
    }

    /// The name was dropped, as far as revision `rev` tells.
    fn remove(&mut self, name: &Name, rev: Rev) {
        let at = self.at(name);
        if self.shards[at].get(name.as_str()).is_some_and(|entry| entry.rev <= rev)
            && let Some(entry) = Arc::make_mut(&mut self.shards[at]).remove(name)
        {
            self.log.push(Delta::Gone { name: name.clone(), token: entry.token });
        }
    }

    /// These are all names: what is not among them, and not newer than `newest`, is gone.
    fn keep_only(&mut self, view: &NamesView, newest: Rev, meanwhile: &[&Binding]) {
        if self.shards.iter().all(|shard| shard.is_empty()) {
            return;
        }
        let all = view.bindings.iter().chain(meanwhile.iter().copied());
        let named: HashMap<&Name, Rev> = all.map(|b| (&b.name, b.rev)).collect();
        // One that is bound anew at an older revision is removed too, and comes again.
        let over = |entry: &&Arc<Entry>| named.get(&entry.name).is_none_or(|rev| *rev < entry.rev);
        let old = self.shards.iter().flat_map(|shard| shard.entries());
        let names: Vec<_> = old.filter(over).map(|entry| entry.name.clone()).collect();
        for name in names {
            self.remove(&name, newest);
        }
    }

    /// Removes the names of lives that are gone.
    fn clear_away(&mut self, gone: &HashSet<Incarnation>) {
        if gone.is_empty() {
            return;
        }
        let is_over = |entry: &&Arc<Entry>| {
            entry.owner.as_ref().is_some_and(|owner| gone.contains(&owner.member.incarnation))
        };
        for shard in self.shards.iter_mut().filter(|shard| shard.has_any(gone)) {
            let over: Vec<_> = shard.entries().filter(is_over).map(|e| e.name.clone()).collect();
            for name in over {
                let Some(entry) = Arc::make_mut(shard).remove(&name) else { continue };
                self.log.push(Delta::Gone { name, token: entry.token });
            }
        }
    }
}

#[cfg(test)]
mod tests;
