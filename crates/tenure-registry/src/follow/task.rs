//! The task itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tenure::naming::{Name, NameHints, Names, NamesView, Rev, Token};
use tenure::store::Backoff;
use tenure::views::Incarnation;
use tenure::{MemberView, Mono, Tenure};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::{Batch, FIRST_PAUSE, Members, PAUSES, Told, until};
use crate::copy::{Copy, Delta, Meanwhile, Writer};
use crate::read::changed;
use crate::waiters::Waiters;

/// What the task shares with the handles.
pub(super) struct Shared {
    pub(super) copy: Arc<Copy>,
    pub(super) members: Arc<ArcSwap<Members>>,
    pub(super) batches: broadcast::Sender<Batch>,
    pub(super) waiters: Arc<Waiters>,
    /// Whether the store can tell what changed since a revision.
    pub(super) tells: bool,
}

pub(super) struct Task {
    writer: Writer,
    copy: Arc<Copy>,
    members: Arc<ArcSwap<Members>>,
    names: Names,
    tenure: Tenure,
    hints: NameHints,
    batches: broadcast::Sender<Batch>,
    /// What this process owns, by its own registrations.
    own: HashMap<Name, Own>,
    /// The newest revision that a registration of this process was given, unless the store
    /// was found to have forgotten it.
    given: Rev,
    /// How many looks have begun.
    looks: u64,
    reach: watch::Sender<Option<Rev>>,
    pauses: Backoff,
    /// How often the store is asked although nothing was heard.
    every: Duration,
    /// Whether the store can tell what changed since a revision.
    tells: bool,
    /// Who waits for a look that begins from now on.
    waiting: Vec<oneshot::Sender<()>>,
    /// What this process registered while a look was on its way, which may not know of it.
    meanwhile: Meanwhile,
    /// Whether a look is on its way.
    is_asking: bool,
    waiters: Arc<Waiters>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.waiters.end();
    }
}

/// A name that this process has registered.
#[derive(Clone, Copy, Debug)]
struct Own {
    token: Token,
    /// How many looks had begun by then.
    looks: u64,
}

/// What a look came to.
enum Looked {
    Done { again: bool },
    Failed,
    Over,
}

impl Task {
    pub(super) fn new(
        tenure: &Tenure,
        shared: Shared,
        reach: watch::Sender<Option<Rev>>,
    ) -> tenure::Result<Self> {
        let Shared { copy, members, batches, waiters, tells } = shared;
        let settings = tenure.settings();
        // Without revisions every name is read each time.
        let every = if tells { settings.heartbeat() } else { settings.ttl() / 2 };
        Ok(Self {
            writer: Writer::new(copy.clone()),
            hints: tenure.names().hints()?,
            names: tenure.names(),
            tenure: tenure.clone(),
            own: HashMap::new(),
            given: Rev::START,
            looks: 0,
            pauses: PAUSES,
            waiting: Vec::new(),
            meanwhile: HashMap::new(),
            is_asking: false,
            copy,
            members,
            batches,
            reach,
            every,
            tells,
            waiters,
        })
    }

    pub(super) async fn run(mut self, mut hears: mpsc::UnboundedReceiver<Told>) {
        let mut next = self.tenure.now();
        // A failure is followed by a pause, whatever is heard meanwhile.
        let mut not_before = next;
        loop {
            let now = self.tenure.now();
            if now >= next && now >= not_before {
                match self.look(&mut hears).await {
                    Looked::Done { again: true } => next = Mono::ZERO,
                    Looked::Done { again: false } => next = self.next_look(now),
                    Looked::Failed => {
                        not_before = self.tenure.now() + self.pauses.pause();
                        next = not_before;
                    }
                    Looked::Over => return,
                }
                continue;
            }
            let end = self.writer.next_end();
            let tenure = self.tenure.clone();
            tokio::select! {
                biased;
                told = hears.recv() => match told {
                    Some(told) => if self.hear(told) { next = Mono::ZERO },
                    None => return,
                },
                _ = self.hints.next(), if next > now => next = Mono::ZERO,
                () = tenure.sleep_until(next.max(not_before)) => {}
                () = until(&tenure, end) => {
                    // The store is asked before any owner is taken for dead.
                    if tenure.now() < not_before { self.expire() } else { next = Mono::ZERO }
                }
            }
        }
    }

    /// When to ask next if nothing is heard: after a while, and some time before an owner's
    /// ttl has run out.
    fn next_look(&self, asked: Mono) -> Mono {
        let early = |end: Mono| {
            let left = end.since(asked);
            asked + (left - left / 4).max(FIRST_PAUSE)
        };
        let end = self.writer.next_end().map(early);
        end.into_iter().fold(asked + self.every, Mono::min)
    }

    /// Asks what changed.
    async fn look(&mut self, hears: &mut mpsc::UnboundedReceiver<Told>) -> Looked {
        let asked = self.tenure.now();
        let waiting = std::mem::take(&mut self.waiting);
        self.meanwhile.clear();
        self.is_asking = true;
        self.looks += 1;
        let mut again = false;
        let since = if self.writer.is_partial() { Rev::START } else { self.copy.stand().rev };
        let names = self.names.clone();
        let given = self.given;
        let tells = self.tells;
        let tenure = self.tenure.clone();
        let owners = self.writer.answered().clone();
        let is_due = self.members.load().asked + self.every / 2 <= asked;
        let answer = async {
            let view = changed(|which| names.read(which), since, given, tells, &owners).await?;
            Ok::<_, tenure::Error>((
                view,
                if is_due { Some(tenure.members().await?) } else { None },
            ))
        };
        tokio::pin!(answer);
        let answered = loop {
            let end = self.next_expiry(asked);
            tokio::select! {
                answered = &mut answer => break answered,
                told = hears.recv() => match told {
                    // What is registered meanwhile is seen here without waiting for the store.
                    Some(told) => again |= self.hear(told),
                    None => return Looked::Over,
                },
                () = until(&tenure, end) => self.expire(),
            }
        };
        // What was given back before the store answered was told before: the answer may know.
        while let Ok(told) = hears.try_recv() {
            again |= self.hear(told);
        }
        self.is_asking = false;
        match answered {
            Ok((view, members)) => {
                self.pauses.reset();
                if view.rev < self.given && self.given == given {
                    // All names were read for it, once.
                    self.given = view.rev;
                }
                self.take(view, members, asked);
                // Who stopped waiting need not know.
                for seen in waiting {
                    let _ = seen.send(());
                }
                // An owner's ttl ran out while the question was on its way.
                Looked::Done { again: again || self.writer.is_partial() }
            }
            Err(tenure::Error::ShutDown) => Looked::Over,
            Err(error) => {
                self.waiting.extend(waiting);
                tracing::debug!(target: "tenure", %error, "names could not be read");
                self.expire();
                Looked::Failed
            }
        }
    }

    /// When names vanish although a question is on its way. An owner whose ttl has run out
    /// already is what the question is about: the answer has a little time to come.
    fn next_expiry(&self, asked: Mono) -> Option<Mono> {
        let overdue = self.writer.next_end().filter(|end| *end <= asked);
        let overdue = overdue.map(|_| asked + self.tenure.settings().margin());
        overdue.into_iter().chain(self.writer.next_end_after(asked)).min()
    }

    fn take(&mut self, view: NamesView, members: Option<Vec<MemberView>>, asked: Mono) {
        self.find_forgotten(&view);
        self.find_unasked(&view);
        // A waiter may know of a binding that the copy never had.
        let gone = if self.waiters.count() > 0 { view.gone.clone() } else { Vec::new() };
        let deltas = self.writer.apply(view, asked, &self.meanwhile);
        self.tell(deltas);
        if !gone.is_empty() {
            self.waiters.free(&gone);
        }
        if let Some(views) = members {
            self.members.store(Arc::new(Members { asked, views }));
        }
        self.reach.send_replace(Some(self.copy.stand().rev));
    }

    /// M6: a store that does not have what this process owned before the question was asked,
    /// and has not given back since, was rolled back.
    fn find_forgotten(&self, view: &NamesView) {
        if !view.whole || !self.tells || self.own.is_empty() {
            return;
        }
        let there: HashMap<_, _> = view.bindings.iter().map(|b| (&b.name, b.token)).collect();
        let lacks = |(name, own): &(&Name, &Own)| {
            own.looks < self.looks && there.get(name) != Some(&own.token)
        };
        let own = self.own.iter().filter(lacks);
        let forgotten: Vec<_> = own.map(|(name, own)| (name.clone(), own.token)).collect();
        if !forgotten.is_empty() {
            let count = forgotten.len();
            tracing::error!(target: "tenure", count, "the store does not have names that this process registered");
            // A member that is gone has lost them already.
            let _ = self.names.forgotten(forgotten);
        }
    }

    /// What the store has under a life of this member, and no caller here registered: a late
    /// copy of a request bound it.
    fn find_unasked(&self, view: &NamesView) {
        let mut found: HashMap<Incarnation, Vec<(Name, Token)>> = HashMap::new();
        for binding in &view.bindings {
            let Some(owner) = binding.owner.as_ref().filter(|o| o.id == *self.tenure.id()) else {
                continue;
            };
            if self.own.get(&binding.name).is_none_or(|own| own.token != binding.token) {
                let names = found.entry(owner.incarnation).or_default();
                names.push((binding.name.clone(), binding.token));
            }
        }
        for (life, names) in found {
            // A member that is gone has nothing bound.
            let _ = self.names.found(life, names);
        }
    }

    fn expire(&mut self) {
        let deltas = self.writer.expire(self.tenure.now());
        self.tell(deltas);
    }

    /// Whether the store is to be asked.
    fn hear(&mut self, told: Told) -> bool {
        match told {
            Told::Own(bindings, seen) => {
                let looks = self.looks;
                let own = bindings.iter().map(|b| (b.name.clone(), Own { token: b.token, looks }));
                self.own.extend(own);
                self.given = bindings.iter().map(|b| b.rev).fold(self.given, Rev::max);
                if self.is_asking {
                    let named = bindings.iter().map(|b| (b.name.clone(), b.clone()));
                    self.meanwhile.extend(named);
                }
                let deltas = self.writer.apply_own(bindings, self.tenure.now());
                self.tell(deltas);
                // Who registered may have stopped waiting.
                let _ = seen.send(());
                false
            }
            Told::Dropped(name, token, seen) => {
                if self.meanwhile.get(&name).is_some_and(|own| own.token == token) {
                    self.meanwhile.remove(&name);
                }
                if self.own.get(&name).is_some_and(|own| own.token == token) {
                    self.own.remove(&name);
                }
                let deltas = self.writer.drop_own(&name, token, self.tenure.now());
                self.tell(deltas);
                let _ = seen.map(|seen| seen.send(()));
                false
            }
            Told::Look(seen) => {
                self.waiting.extend(seen);
                true
            }
            Told::Lives(answer) => {
                // Who asked may have stopped waiting.
                let _ = answer.send((self.writer.lives(), self.copy.stand()));
                false
            }
        }
    }

    fn tell(&self, deltas: Vec<Delta>) {
        if self.waiters.count() > 0 {
            let free = |delta: &Delta| matches!(delta, Delta::Gone { .. });
            self.waiters.free(deltas.iter().filter(|delta| free(delta)).map(Delta::name));
        }
        if !deltas.is_empty() {
            // An error only says that there is no watch.
            let _ = self.batches.send(Batch { stand: self.copy.stand(), deltas: deltas.into() });
        }
    }
}
