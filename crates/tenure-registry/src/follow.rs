//! The task that keeps the copy up to date: it asks what changed since the copy's revision.
//!
//! A hint, a heartbeat's time without one, the coming end of an owner's ttl, a waiting caller
//! and a failure each lead to the same question, so that a lost hint costs time and nothing
//! else (R6). One question is on its way at a time. Nothing of this extends anybody's trust.
//!
//! # What could break it
//!
//! - **The store cannot be asked.** Owners' ttl is counted down here, also while a question is
//!   on its way, and their names vanish (R5). An owner may have lived on all the same: so all
//!   names are read next, not what changed.
//! - **A registration during a question or a pause** is taken in at once, and laid over the
//!   answer, which may not know of it (R1).
//! - **The store forgot what this process owns** (it was promoted or restored). It answers
//!   with all names, under a revision that may be lower or higher than the copy's. What was
//!   registered before the question and is not in the answer is lost, and its owner is told
//!   at once (M6).
//! - **The member is shut down.** The task ends, and with it every wait and every watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tenure::{
    Backoff, Binding, Incarnation, MemberRef, MemberView, Mono, Name, NameHints, Names, NamesView,
    Rev, Tenure, Token, WhichNames,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::RegisterError;
use crate::copy::{Copy, Delta, Stand, Writer};

/// How many answers a watcher may be behind.
const ANSWERS_KEPT: usize = 1024;
/// The shortest pause, also between two questions that nobody waits for.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The pauses after failures.
pub(crate) const PAUSES: Backoff = Backoff::new(FIRST_PAUSE, Duration::from_secs(5));

/// What changed with one answer.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) stand: Stand,
    pub(crate) deltas: Arc<[Delta]>,
}

/// What the registry's handles tell the task.
#[derive(Debug)]
pub(crate) enum Told {
    /// This process has registered these names.
    Own(Vec<Binding>, oneshot::Sender<()>),
    /// This process has given a name back.
    Dropped(Name, Token, Option<oneshot::Sender<()>>),
    /// Somebody waits for what is in the store now.
    Look(Option<oneshot::Sender<()>>),
    /// Somebody wants to know which lives own names, and where the copy stands then: whoever
    /// watches was told everything up to there.
    Lives(oneshot::Sender<(Vec<MemberRef>, Stand)>),
}

/// The members, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) asked: Mono,
    pub(crate) views: Vec<MemberView>,
}

/// What is shared between the task and the handles.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) copy: Arc<Copy>,
    pub(crate) members: Arc<ArcSwap<Members>>,
    pub(crate) told: mpsc::UnboundedSender<Told>,
    pub(crate) batches: broadcast::Sender<Batch>,
    /// The revision, once something was read. Its sender goes with the task.
    pub(crate) reached: watch::Receiver<Option<Rev>>,
    /// Whether the store can tell what changed since a revision.
    pub(crate) tells: bool,
    tenure: Tenure,
    task: tokio::task::AbortHandle,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The followers of this process: one for each member.
static OPEN: Mutex<Vec<Weak<Follower>>> = Mutex::new(Vec::new());

impl Follower {
    /// The one of this member, which is started if there is none. Must be called inside a
    /// runtime; one whose runtime has gone is not used again.
    pub(crate) fn of(tenure: &Tenure) -> tenure::Result<Arc<Self>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|follower| follower.strong_count() > 0);
        let works = |f: &Arc<Self>| f.tenure.is(tenure) && !f.task.is_finished();
        if let Some(found) = open.iter().filter_map(Weak::upgrade).find(works) {
            return Ok(found);
        }
        let started = Arc::new(Self::start(tenure)?);
        open.push(Arc::downgrade(&started));
        Ok(started)
    }

    fn start(tenure: &Tenure) -> tenure::Result<Self> {
        let tells = tenure.capabilities().keeps_names()?.since;
        let copy = Arc::new(Copy::new());
        let members = Arc::new(ArcSwap::default());
        let (told, hears) = mpsc::unbounded_channel();
        let (reach, reached) = watch::channel(None);
        let batches = broadcast::Sender::new(ANSWERS_KEPT);
        let settings = tenure.settings();
        let task = Task {
            writer: Writer::new(copy.clone()),
            hints: tenure.names().hints()?,
            names: tenure.names(),
            tenure: tenure.clone(),
            batches: batches.clone(),
            copy: copy.clone(),
            members: members.clone(),
            own: HashMap::new(),
            looks: 0,
            reach,
            pauses: PAUSES,
            // Without revisions every name is read each time.
            every: if tells { settings.heartbeat() } else { settings.ttl() / 2 },
            tells,
            waiting: Vec::new(),
            meanwhile: Vec::new(),
        };
        let task = tokio::spawn(task.run(hears)).abort_handle();
        let tenure = tenure.clone();
        Ok(Self { copy, members, told, batches, reached, tells, tenure, task })
    }

    /// Waits until the copy has read what the caller wants.
    pub(crate) async fn reaches(&self, wanted: impl Fn(Rev) -> bool) -> Result<(), RegisterError> {
        let mut reached = self.reached.clone();
        let waited = reached.wait_for(|at| at.is_some_and(&wanted)).await;
        waited.map(drop).map_err(|_| tenure::Error::ShutDown.into())
    }

    /// Returns once the task is over.
    pub(crate) async fn ended(&self) {
        let mut reached = self.reached.clone();
        while reached.changed().await.is_ok() {}
    }

    /// Tells the task of these, and waits until they are in the copy.
    pub(crate) async fn overlay(&self, own: Vec<Binding>) {
        let (seen, is_seen) = oneshot::channel();
        if self.told.send(Told::Own(own, seen)).is_ok() {
            // In this process: no request is waited for.
            let _ = is_seen.await;
        }
    }
}

struct Task {
    writer: Writer,
    copy: Arc<Copy>,
    members: Arc<ArcSwap<Members>>,
    names: Names,
    tenure: Tenure,
    hints: NameHints,
    batches: broadcast::Sender<Batch>,
    /// What this process owns, by its own registrations.
    own: HashMap<Name, Own>,
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
    meanwhile: Vec<Binding>,
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
    async fn run(mut self, mut hears: mpsc::UnboundedReceiver<Told>) {
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
            let (end, tenure) = (self.writer.next_end(), self.tenure.clone());
            tokio::select! {
                biased;
                told = hears.recv() => match told {
                    Some(told) => if self.hear(told) { next = Mono::ZERO },
                    None => return,
                },
                () = self.hints.next(), if next > now => next = Mono::ZERO,
                () = tenure.sleep_until(next.max(not_before)) => {}
                () = until(&tenure, end) => {
                    // The store is asked before anybody is taken for dead.
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
        self.looks += 1;
        let mut again = false;
        let since = if self.writer.is_partial() { Rev::START } else { self.copy.stand().rev };
        let (names, tells, tenure) = (self.names.clone(), self.tells, self.tenure.clone());
        let is_due = self.members.load().asked + self.every / 2 <= asked;
        let answer = async {
            let view = read(&names, since, tells).await?;
            Ok::<_, tenure::Error>((
                view,
                if is_due { Some(tenure.members().await?) } else { None },
            ))
        };
        tokio::pin!(answer);
        let answered = loop {
            let end = self.writer.next_end().filter(|end| *end > asked);
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
        match answered {
            Ok((view, members)) => {
                self.pauses.reset();
                self.take(view, members, asked);
                // Who stopped waiting need not know.
                for seen in waiting {
                    let _ = seen.send(());
                }
                Looked::Done { again }
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

    fn take(&mut self, view: NamesView, members: Option<Vec<MemberView>>, asked: Mono) {
        self.find_forgotten(&view);
        self.find_unasked(&view);
        let deltas = self.writer.apply(view, asked, &self.meanwhile);
        self.tell(deltas);
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

    /// What the store has under a life of this member, and nobody here registered: a late
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
                self.meanwhile.extend(bindings.iter().cloned());
                let deltas = self.writer.apply_own(bindings, self.tenure.now());
                self.tell(deltas);
                // Who registered may have stopped waiting.
                let _ = seen.send(());
                false
            }
            Told::Dropped(name, token, seen) => {
                self.meanwhile.retain(|own| own.name != name || own.token != token);
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
        if !deltas.is_empty() {
            // Nobody watches: nobody is told.
            let _ = self.batches.send(Batch { stand: self.copy.stand(), deltas: deltas.into() });
        }
    }
}

/// What changed since a revision; where the store cannot tell, every name.
async fn read(names: &Names, since: Rev, tells: bool) -> tenure::Result<NamesView> {
    if tells {
        return names.read(WhichNames::Since(since)).await;
    }
    let view = names.read(WhichNames::Prefix(String::new())).await?;
    let owner = |binding: &Binding| Some((binding.owner.clone()?, binding.remaining));
    let owners = view.bindings.iter().filter_map(owner).collect();
    Ok(NamesView { owners, whole: true, ..view })
}

/// Until an owner's ttl has run out, on the member's own clock.
async fn until(tenure: &Tenure, end: Option<Mono>) {
    match end {
        Some(end) => tenure.sleep_until(end).await,
        None => std::future::pending().await,
    }
}
