//! The task that keeps the copy up to date: it asks what changed since the copy's revision.
//!
//! A hint, the end of an owner's ttl, a waiting caller and a failure each lead to the same
//! question, so that a lost hint costs time and nothing else (R6). One question is on its
//! way at a time. Nothing of this extends anybody's trust.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Binding, LostReason, Mono, Name, NameHints, Names, NamesView, Rev, Tenure, Token, WhichNames,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::copy::{Copy, Delta, Writer};

/// How many answers a watcher may be behind.
const ANSWERS_KEPT: usize = 1024;
/// The pauses after failures.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What changed with one answer.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) rev: Rev,
    pub(crate) deltas: Arc<[Delta]>,
}

/// What the registry's handles tell the task.
#[derive(Debug)]
pub(crate) enum Told {
    /// This process has registered a name.
    Own(Binding, oneshot::Sender<()>),
    /// This process has given a name back.
    Dropped(Name, Token, Option<oneshot::Sender<()>>),
    /// Somebody waits for what is in the store now.
    Look(Option<oneshot::Sender<()>>),
}

/// What is shared between the task and the handles.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) copy: Arc<Copy>,
    pub(crate) told: mpsc::UnboundedSender<Told>,
    pub(crate) batches: broadcast::Sender<Batch>,
    /// The revision, once something was read.
    pub(crate) reached: watch::Receiver<Option<Rev>>,
    /// Whether the store can tell what changed since a revision.
    pub(crate) tells: bool,
    task: tokio::task::AbortHandle,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower {
    /// Must be called inside a runtime.
    pub(crate) fn start(tenure: &Tenure) -> tenure::Result<Self> {
        let tells = tenure.capabilities().keeps_names()?.since;
        let copy = Arc::new(Copy::new());
        let (told, hears) = mpsc::unbounded_channel();
        let (reach, reached) = watch::channel(None);
        let batches = broadcast::Sender::new(ANSWERS_KEPT);
        let task = Task {
            writer: Writer::new(copy.clone()),
            hints: tenure.names().hints()?,
            names: tenure.names(),
            tenure: tenure.clone(),
            batches: batches.clone(),
            copy: copy.clone(),
            own: std::collections::HashMap::new(),
            reach,
            pause: FIRST_PAUSE,
            tells,
            waiting: Vec::new(),
            meanwhile: Vec::new(),
        };
        let task = tokio::spawn(task.run(hears)).abort_handle();
        Ok(Self { copy, told, batches, reached, tells, task })
    }
}

struct Task {
    writer: Writer,
    copy: Arc<Copy>,
    names: Names,
    tenure: Tenure,
    hints: NameHints,
    batches: broadcast::Sender<Batch>,
    /// What this process owns, by its own registrations.
    own: std::collections::HashMap<Name, Token>,
    reach: watch::Sender<Option<Rev>>,
    pause: Duration,
    /// Whether the store can tell what changed since a revision.
    tells: bool,
    /// Who waits for a look that begins from now on.
    waiting: Vec<oneshot::Sender<()>>,
    /// What this process registered while a look was on its way, which may not know of it.
    meanwhile: Vec<Binding>,
}

impl Task {
    async fn run(mut self, mut hears: mpsc::UnboundedReceiver<Told>) {
        let mut look = true;
        loop {
            if look {
                look = !self.look(&mut hears).await;
                continue;
            }
            self.meanwhile.clear();
            let end = self.writer.next_end();
            tokio::select! {
                biased;
                told = hears.recv() => match told {
                    Some(told) => look = self.hear(told),
                    None => return,
                },
                () = self.hints.next() => look = true,
                () = until(&self.tenure, end) => look = true,
            }
        }
    }

    /// Asks what changed. `false` if it failed, after a pause.
    async fn look(&mut self, hears: &mut mpsc::UnboundedReceiver<Told>) -> bool {
        let asked = self.tenure.now();
        let waiting = std::mem::take(&mut self.waiting);
        self.meanwhile.clear();
        let since = self.copy.rev();
        let names = self.names.clone();
        let tells = self.tells;
        let answer = read(&names, since, tells);
        tokio::pin!(answer);
        let mut again = false;
        let answered = loop {
            tokio::select! {
                answered = &mut answer => break answered,
                told = hears.recv() => match told {
                    // What is registered meanwhile is seen here without waiting for the store.
                    Some(told) => again |= self.hear(told),
                    None => return true,
                },
            }
        };
        match answered {
            Ok(view) => {
                self.pause = FIRST_PAUSE;
                self.find_forgotten(&view, since);
                let deltas = self.writer.apply(view, asked);
                self.tell(deltas);
                for binding in std::mem::take(&mut self.meanwhile) {
                    let deltas = self.writer.apply_own(binding, asked);
                    self.tell(deltas);
                }
                self.reach.send_replace(Some(self.copy.rev()));
                // Who stopped waiting need not know.
                for seen in waiting {
                    let _ = seen.send(());
                }
                !again
            }
            Err(error) => {
                self.waiting.extend(waiting);
                tracing::debug!(target: "tenure", %error, "names could not be read");
                let deltas = self.writer.expire(self.tenure.now());
                self.tell(deltas);
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                self.tenure.sleep_until(self.tenure.now() + pause).await;
                false
            }
        }
    }

    /// M6: a store that does not have what this process owns was rolled back.
    fn find_forgotten(&self, view: &NamesView, since: Rev) {
        if !view.whole || view.rev >= since && since > Rev::START {
            return;
        }
        let there: std::collections::HashMap<_, _> =
            view.bindings.iter().map(|binding| (&binding.name, binding.token)).collect();
        let lacks = |(name, token): (&Name, &Token)| {
            let is_lacking = there.get(name) != Some(token) && token.get() <= since.get();
            is_lacking.then(|| (name.clone(), *token))
        };
        let forgotten: Vec<_> = self.own.iter().filter_map(lacks).collect();
        if !forgotten.is_empty() {
            let count = forgotten.len();
            tracing::error!(target: "tenure", count, "the store has forgotten names of this process: it was rolled back");
            // A member that is gone has lost them already.
            let _ = self.names.forgotten(forgotten);
        }
    }

    /// Whether the store is to be asked.
    fn hear(&mut self, told: Told) -> bool {
        match told {
            Told::Own(binding, seen) => {
                self.own.insert(binding.name.clone(), binding.token);
                self.meanwhile.push(binding.clone());
                let deltas = self.writer.apply_own(binding, self.tenure.now());
                self.tell(deltas);
                // Who registered may have stopped waiting.
                let _ = seen.send(());
                false
            }
            Told::Dropped(name, token, seen) => {
                self.meanwhile.retain(|own| own.name != name || own.token != token);
                if self.own.get(&name) == Some(&token) {
                    self.own.remove(&name);
                }
                let deltas = self.writer.drop_own(&name, token);
                self.tell(deltas);
                let _ = seen.map(|seen| seen.send(()));
                false
            }
            Told::Look(seen) => {
                self.waiting.extend(seen);
                true
            }
        }
    }

    fn tell(&self, deltas: Vec<Delta>) {
        if !deltas.is_empty() {
            // Nobody watches: nobody is told.
            let _ = self.batches.send(Batch { rev: self.copy.rev(), deltas: deltas.into() });
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

/// Whether a name that was lost so may be taken again.
pub(crate) fn may_come_back(reason: LostReason) -> bool {
    !matches!(reason, LostReason::Resigned)
}
