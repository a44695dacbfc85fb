//! The copy of a namespace's names that lookups read: who owns what, at one revision.
//!
//! One task writes it, and everybody reads it without a lock. A reader gets the whole of one
//! answer or nothing of it, because a new root takes the place of the old one in one step
//! (R3). Names lie in shards, so that a change copies a shard and not the whole.
//!
//! # What must stay true
//!
//! - The copy at revision r equals the store at r, and beside it has this process's own
//!   registrations, which may be newer (R1).
//! - A life that is gone takes its names with it at once: each name points to its owner, and
//!   the owner says whether it is gone (R4). The names are cleared away afterwards.
//! - A binding takes the place of an older one only. What the store answers late never takes
//!   the place of something newer.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tenure::{
    Binding, Incarnation, MemberRef, Mono, Name, NamesView, Rev, Timestamp, Token, Value,
};

/// How many shards: a power of two. A change copies one of them.
const SHARDS: usize = 1024;

type Shard = HashMap<Name, Arc<Entry>>;

/// One name, as the copy has it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) token: Token,
    pub(crate) rev: Rev,
    pub(crate) value: Value,
    pub(crate) bound_at: Timestamp,
    /// `None` if it is bound to nobody.
    pub(crate) owner: Option<Arc<Owner>>,
}

impl Entry {
    fn is_there(&self) -> bool {
        self.owner.as_ref().is_none_or(|owner| !owner.is_gone())
    }
}

/// One life that owns names.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) member: MemberRef,
    gone: AtomicBool,
    until: AtomicU64,
}

impl Owner {
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// What is left of its ttl, counted on this process's clock.
    pub(crate) fn remaining(&self, now: Mono) -> Duration {
        Mono::from_nanos(self.until.load(Ordering::Relaxed)).since(now)
    }
}

#[derive(Debug)]
struct Root {
    rev: Rev,
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

impl Copy {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Arc::default()).collect();
        Self {
            root: ArcSwap::from_pointee(Root { rev: Rev::START, shards }),
            hash: RandomState::new(),
        }
    }

    /// The revision that it reflects.
    pub(crate) fn rev(&self) -> Rev {
        self.root.load().rev
    }

    /// A name, without a lock or an allocation.
    pub(crate) fn get(&self, name: &str) -> Option<(Arc<Entry>, Rev)> {
        let root = self.root.load();
        let entry = root.shards[self.shard(name)].get(name)?;
        entry.is_there().then(|| (entry.clone(), root.rev))
    }

    /// Every name that the caller wants, with the revision.
    pub(crate) fn select(&self, wanted: impl Fn(&Entry) -> bool) -> (Vec<Arc<Entry>>, Rev) {
        let root = self.root.load();
        let all = root.shards.iter().flat_map(|shard| shard.values());
        (all.filter(|entry| entry.is_there() && wanted(entry)).cloned().collect(), root.rev)
    }

    fn shard(&self, name: &str) -> usize {
        usize::try_from(self.hash.hash_one(name)).unwrap_or(usize::MAX) % SHARDS
    }
}

/// The one who writes the copy.
#[derive(Debug)]
pub(crate) struct Writer {
    copy: Arc<Copy>,
    owners: HashMap<Incarnation, Arc<Owner>>,
    /// What this process has given back, until the store's answers know of it: an answer that
    /// was on its way does not show it again.
    released: HashMap<Name, Token>,
}

impl Writer {
    pub(crate) fn new(copy: Arc<Copy>) -> Self {
        Self { copy, owners: HashMap::new(), released: HashMap::new() }
    }

    /// When the first owner's ttl has run out, on this process's clock.
    pub(crate) fn next_end(&self) -> Option<Mono> {
        let until = |owner: &Arc<Owner>| Mono::from_nanos(owner.until.load(Ordering::Relaxed));
        self.owners.values().map(until).min()
    }

    /// Takes in what the store answered to a question that was asked at `asked`, and says
    /// what changed.
    pub(crate) fn apply(&mut self, mut view: NamesView, asked: Mono) -> Vec<Delta> {
        let before = self.copy.root.load_full();
        if view.rev < before.rev && !view.whole {
            // It was overtaken by a newer answer.
            return Vec::new();
        }
        self.pass_over_released(&mut view);
        let gone = self.take_owners(&view, asked);
        let mut changes =
            Changes { copy: self.copy.clone(), shards: before.shards.clone(), log: Vec::new() };
        if view.whole {
            // Above the answer's revision there is only what this process registered itself,
            // unless the store was rolled back or has no revision: then its word counts.
            let counts = view.rev < before.rev || view.rev == Rev::START;
            let newest = if counts { Rev::new(u64::MAX) } else { view.rev };
            changes.keep_only(&view, newest);
        }
        for name in &view.gone {
            changes.remove(name, view.rev);
        }
        for binding in view.bindings {
            let owner = self.owner_of(&binding, asked);
            changes.insert(binding, owner);
        }
        if gone {
            changes.clear_away();
        }
        let Changes { shards, log, .. } = changes;
        self.copy.root.store(Arc::new(Root { rev: view.rev, shards }));
        log
    }

    /// A registration of this process: it is seen here before the store is asked (R1).
    pub(crate) fn apply_own(&mut self, binding: Binding, asked: Mono) -> Vec<Delta> {
        let owner = self.owner_of(&binding, asked);
        self.change(|changes| changes.insert(binding, owner))
    }

    /// A name that this process has given back.
    pub(crate) fn drop_own(&mut self, name: &Name, token: Token) -> Vec<Delta> {
        self.released.insert(name.clone(), token);
        let rev = match self.copy.get(name.as_str()) {
            Some((entry, _)) if entry.token == token => entry.rev,
            _ => return Vec::new(),
        };
        self.change(|changes| changes.remove(name, rev))
    }

    /// The ttl of owners has run out, and the store could not be asked: nobody renewed them
    /// as far as is known, so that their names vanish (R5).
    pub(crate) fn expire(&mut self, now: Mono) -> Vec<Delta> {
        let over = |owner: &Arc<Owner>| owner.remaining(now).is_zero();
        let ended: Vec<_> = self.owners.values().filter(|o| over(o)).cloned().collect();
        if ended.is_empty() {
            return Vec::new();
        }
        for owner in ended {
            owner.gone.store(true, Ordering::Release);
            self.owners.remove(&owner.member.incarnation);
        }
        self.change(Changes::clear_away)
    }

    /// Takes out of an answer what this process has given back since.
    fn pass_over_released(&mut self, view: &mut NamesView) {
        let mut there = std::collections::HashSet::new();
        view.bindings.retain(|binding| {
            let is_released = self.released.get(&binding.name) == Some(&binding.token);
            if is_released {
                there.insert(binding.name.clone());
            }
            !is_released
        });
        if view.whole {
            self.released.retain(|name, _| there.contains(name));
        } else {
            for name in &view.gone {
                self.released.remove(name);
            }
        }
    }

    fn change(&mut self, with: impl FnOnce(&mut Changes)) -> Vec<Delta> {
        let before = self.copy.root.load_full();
        let mut changes =
            Changes { copy: self.copy.clone(), shards: before.shards.clone(), log: Vec::new() };
        with(&mut changes);
        let Changes { shards, log, .. } = changes;
        self.copy.root.store(Arc::new(Root { rev: before.rev, shards }));
        log
    }

    /// Notes who lives, and whether somebody is gone.
    fn take_owners(&mut self, view: &NamesView, asked: Mono) -> bool {
        for (member, remaining) in &view.owners {
            self.owner(member, *remaining, asked);
        }
        let lives: BTreeMap<_, ()> =
            view.owners.iter().map(|(member, _)| (member.incarnation, ())).collect();
        let before = self.owners.len();
        self.owners.retain(|life, owner| {
            let stays = lives.contains_key(life);
            if !stays {
                owner.gone.store(true, Ordering::Release);
            }
            stays
        });
        self.owners.len() < before
    }

    fn owner_of(&mut self, binding: &Binding, asked: Mono) -> Option<Arc<Owner>> {
        let member = binding.owner.as_ref()?;
        Some(self.owner(member, binding.remaining, asked))
    }

    fn owner(&mut self, member: &MemberRef, remaining: Duration, asked: Mono) -> Arc<Owner> {
        let owner = self.owners.entry(member.incarnation).or_insert_with(|| {
            let gone = AtomicBool::new(false);
            Arc::new(Owner { member: member.clone(), gone, until: AtomicU64::new(0) })
        });
        owner.until.fetch_max((asked + remaining).as_nanos(), Ordering::Relaxed);
        owner.clone()
    }
}

/// A new root in the making.
struct Changes {
    copy: Arc<Copy>,
    shards: Box<[Arc<Shard>]>,
    log: Vec<Delta>,
}

impl Changes {
    fn shard(&mut self, name: &Name) -> &mut Shard {
        let at = self.copy.shard(name.as_str());
        Arc::make_mut(&mut self.shards[at])
    }

    fn insert(&mut self, binding: Binding, owner: Option<Arc<Owner>>) {
        let Binding { name, token, rev, value, bound_at, .. } = binding;
        let entry = Arc::new(Entry { name: name.clone(), token, rev, value, bound_at, owner });
        let shard = self.shard(&name);
        let older = shard.get(&name);
        if older.is_some_and(|older| older.rev >= rev && older.is_there()) {
            return;
        }
        let is_new = older.is_none_or(|older| older.token != token);
        shard.insert(name, entry.clone());
        self.log.push(Delta::Bound { entry, is_new });
    }

    /// The name was dropped, as far as revision `rev` tells.
    fn remove(&mut self, name: &Name, rev: Rev) {
        let shard = self.shard(name);
        if shard.get(name).is_some_and(|entry| entry.rev <= rev)
            && let Some(entry) = shard.remove(name)
        {
            self.log.push(Delta::Gone { name: name.clone(), token: entry.token });
        }
    }

    /// These are all names: what is not among them, and not newer than `newest`, is gone.
    fn keep_only(&mut self, view: &NamesView, newest: Rev) {
        let named: HashMap<&Name, Rev> = view.bindings.iter().map(|b| (&b.name, b.rev)).collect();
        let old = self.shards.iter().flat_map(|shard| shard.values());
        // One that is bound anew at an older revision is removed too, and comes again.
        let over = old.filter(|entry| named.get(&entry.name).is_none_or(|rev| *rev < entry.rev));
        let names: Vec<_> = over.map(|entry| entry.name.clone()).collect();
        for name in names {
            self.remove(&name, newest);
        }
    }

    /// Removes the names of lives that are gone.
    fn clear_away(&mut self) {
        for at in 0..self.shards.len() {
            if self.shards[at].values().all(|entry| entry.is_there()) {
                continue;
            }
            let log = &mut self.log;
            Arc::make_mut(&mut self.shards[at]).retain(|name, entry| {
                let stays = entry.is_there();
                if !stays {
                    log.push(Delta::Gone { name: name.clone(), token: entry.token });
                }
                stays
            });
        }
    }
}

#[cfg(test)]
mod tests;
