//! Names of a member: taking, changing and dropping them, and reading those of all.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tenure_core::{
    BadBind, Binding, Hint, Incarnation, Input, LostReason, MAX_VALUE, Mono, Name, NameAnswer,
    NameWish, NamesView, Rev, TermRef, Token, Value, WhichNames,
};
use tenure_store::{ErrorKind, FenceBlocking, FenceError, FenceIn, Fenced, FencedName};
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::sync::watch;

use crate::feed::Hints;
use crate::member::Shared;
use crate::member::driver::{Command, NameCommand, NameOutcome, wait_for_end};
use crate::member::owned::Owned;
use crate::naming::NameError;
use crate::stream::{Stepping, Steps};
use crate::{Error, Leadership, Result, Tenure};

/// The names of a member's namespace, from [`Tenure::names`]. The crate `tenure-registry`
/// builds a registry with local lookups on it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::naming::{Name, NameError, Value};
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let name = Name::new("user/42")?;
/// let mine = tenure.names().take(name.clone(), Value::at("10.0.0.7:9000")?).await?;
/// assert!(mine.is_current());
///
/// let again = tenure.names().take(name, Value::empty()).await;
/// assert!(matches!(again, Err(NameError::Taken(binding)) if binding.token == mine.token()));
/// mine.release().await?;
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Names {
    shared: Arc<Shared>,
}

impl Tenure {
    /// The names of this member's namespace.
    #[must_use]
    pub fn names(&self) -> Names {
        Names { shared: self.shared.clone() }
    }
}

impl Names {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Takes a name for this member, if it is free. An answer is waited for as long as the
    /// member's ttl; after that it is [`NameError::Unknown`], and whatever the store did is
    /// undone as soon as it can be reached. Drop the future to stop waiting earlier.
    pub async fn take(&self, name: Name, value: Value) -> Result<Registration, NameError> {
        self.take_under(name, value, None).await
    }

    /// The same, if this leadership is still the newest of its election: the store compares in
    /// the same step. Otherwise the answer is [`NameError::Fenced`].
    pub async fn take_fenced(
        &self,
        name: Name,
        value: Value,
        leadership: &Leadership,
    ) -> Result<Registration, NameError> {
        let term = leadership.term();
        let fence = TermRef::new(term.election.clone(), term.number);
        self.take_under(name, value, Some(fence)).await
    }

    async fn take_under(
        &self,
        name: Name,
        value: Value,
        fence: Option<TermRef>,
    ) -> Result<Registration, NameError> {
        let take = (name, NameWish::Take { value }, fence);
        let waiting = self.ask([take])?.pop().ok_or(Error::ShutDown)?;
        waiting.registered(self.patience()).await
    }

    /// Takes many names: they go together, in as few requests as the store's batch allows.
    /// Each has an answer of its own, in order; all are waited for together, as long as the
    /// member's ttl.
    pub async fn take_all(
        &self,
        names: impl IntoIterator<Item = (Name, Value)>,
    ) -> Result<Vec<Result<Registration, NameError>>> {
        let takes = names.into_iter().map(|(name, value)| (name, NameWish::Take { value }, None));
        let waiting = self.ask(takes)?;
        let until = self.patience();
        let mut answers = Vec::with_capacity(waiting.len());
        for each in waiting {
            answers.push(each.registered(until).await);
        }
        Ok(answers)
    }

    /// Until when what is asked now is waited for.
    fn patience(&self) -> Mono {
        self.shared.time.now() + self.shared.client.settings().ttl()
    }

    /// Writes a name that has no owner, under the fence of a term.
    pub(crate) async fn write_fenced(
        &self,
        name: Name,
        wish: NameWish,
        fence: TermRef,
    ) -> Result<NameAnswer, NameError> {
        let waiting = self.ask([(name, wish, Some(fence))])?.pop().ok_or(Error::ShutDown)?;
        waiting.answer(self.patience()).await
    }

    /// Whatever a store would refuse is refused here: the machine would repeat it, and other
    /// names would wait behind it.
    fn ask(
        &self,
        ops: impl IntoIterator<Item = (Name, NameWish, Option<TermRef>)>,
    ) -> Result<Vec<Waiting>> {
        let traits = self.shared.client.first_capabilities().keeps_names()?;
        let mut waiting = Vec::new();
        let mut commands = Vec::new();
        for (name, wish, fence) in ops {
            if let NameWish::Take { value } | NameWish::Change { value, .. } = &wish {
                check(&name, value)?;
            }
            if fence.is_some() && !traits.fenced {
                return Err(self.shared.client.first_capabilities().without_fence().into());
            }
            let ticket = self.shared.ticket();
            let (reply, outcome) = oneshot::channel();
            let shared = self.shared.clone();
            let open = Open { shared, name: name.clone(), ticket, is_open: true };
            waiting.push(Waiting { open, outcome });
            commands.push(NameCommand { ticket, name, wish, fence, reply });
        }
        self.shared.send(Command::Bind(commands))?;
        Ok(waiting)
    }

    /// Refuses a value that no name of a member can have, before anything is asked.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tenure::Tenure;
    /// use tenure::naming::{Name, Value};
    ///
    /// let names = Tenure::connect("memory:").await?.names();
    /// let name = Name::new("user/42")?;
    /// assert!(names.accepts(&name, &Value::at("10.0.0.7:9000")?).is_ok());
    /// let big = Value::empty().with_data(vec![0; 5_000])?;
    /// assert!(names.accepts(&name, &big).is_err());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn accepts(&self, name: &Name, value: &Value) -> Result<()> {
        check(name, value)
    }

    /// Reads names from the store, all of one moment.
    pub async fn read(&self, which: WhichNames) -> Result<NamesView> {
        self.shared.client.names(which).await
    }

    /// Tells that names may have changed, as it happens. It is only a hint: read them.
    pub fn hints(&self) -> Result<NameHints> {
        let hints = self.shared.client.feed()?.hints()?;
        Ok(NameHints { looks: Stepping::new(Looks { hints, ended: self.shared.ended.clone() }) })
    }

    /// Says that a read of the store shows these names bound to a life of this member. Those
    /// that no caller here asked for are given back.
    pub fn found(&self, life: Incarnation, names: Vec<(Name, Token)>) -> Result<()> {
        self.shared.send(Command::Tell(Input::NamesFound { life, names }))
    }

    /// Says that a read of the store did not show these bindings of this member, although they
    /// were bound before: the store was rolled back. They are lost at once.
    pub fn forgotten(&self, names: Vec<(Name, Token)>) -> Result<()> {
        self.shared.send(Command::Tell(Input::NamesForgotten { names }))
    }
}

/// Hints that names may have changed, from [`Names::hints`]: a stream whose items say
/// nothing but that. It keeps nothing: the member leaves without it.
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct NameHints {
    looks: Stepping<Looks>,
}

impl NameHints {
    /// Waits for a hint; `None` at the [end](crate#streams): once the member is shut down.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<()> {
        self.looks.next().await
    }
}

impl Stream for NameHints {
    type Item = ();

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<()>> {
        self.get_mut().looks.poll(context)
    }
}

/// The hints after which names are to be read.
struct Looks {
    hints: Hints,
    ended: watch::Receiver<()>,
}

impl Steps for Looks {
    type Item = ();

    async fn step(&mut self) -> Option<()> {
        loop {
            let hint = tokio::select! {
                biased;
                hint = self.hints.next() => hint,
                () = wait_for_end(&self.ended) => return None,
            };
            match hint {
                // A life that is gone takes its names with it.
                Hint::Names | Hint::Anything | Hint::Gone(_) => return Some(()),
                _ => {}
            }
        }
    }
}

/// An operation whose answer is waited for. Dropped, it is withdrawn.
struct Waiting {
    open: Open,
    outcome: oneshot::Receiver<NameOutcome>,
}

struct Open {
    shared: Arc<Shared>,
    name: Name,
    ticket: u64,
    is_open: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_open {
            let name = self.name.clone();
            let ticket = self.ticket;
            // A driver that is gone has nothing left to withdraw.
            let _ = self.shared.send(Command::WithdrawName { name, ticket });
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What arrived and was not received any more: the driver takes it for delivered.
        self.outcome.close();
        if let Ok(NameOutcome::Owned(owned)) = self.outcome.try_recv() {
            let name = owned.name().clone();
            let token = owned.token();
            // A driver that is gone has left, and with it the name.
            let _ = self.open.shared.send(Command::LetGoOfName { name, token });
        }
    }
}

impl Waiting {
    async fn outcome(mut self, until: Mono) -> Result<(NameOutcome, Arc<Shared>), NameError> {
        let shared = self.open.shared.clone();
        let limit = until.since(shared.time.now());
        let runtime = shared.client.runtime();
        let answered = match self.outcome.try_recv() {
            // Of many that are waited for together, one may be looked at when time is up.
            Err(TryRecvError::Empty) if limit.is_zero() => None,
            Err(TryRecvError::Empty) => {
                let outcome = shared.time.within_on(runtime, limit, &mut self.outcome).await;
                outcome.map(|outcome| outcome.map_err(|_| Error::ShutDown))
            }
            Err(TryRecvError::Closed) => Some(Err(Error::ShutDown)),
            Ok(outcome) => Some(Ok(outcome)),
        };
        let Some(outcome) = answered else {
            let because = shared.board.health().last_error.clone();
            return Err(NameError::Unknown {
                name: self.open.name.clone(),
                waited: shared.client.settings().ttl(),
                because,
            });
        };
        self.open.is_open = false;
        Ok((outcome?, shared))
    }

    async fn answer(self, until: Mono) -> Result<NameAnswer, NameError> {
        match self.outcome(until).await?.0 {
            NameOutcome::Answered(answer) => Ok(*answer),
            NameOutcome::Owned(owned) => Ok(NameAnswer::Taken(owned.binding())),
        }
    }

    async fn registered(self, until: Mono) -> Result<Registration, NameError> {
        match self.outcome(until).await? {
            (NameOutcome::Owned(owned), shared) => Ok(Registration { owned, shared }),
            (NameOutcome::Answered(answer), _) => Err(refused(*answer)),
        }
    }
}

/// Refuses what no store does.
fn check(name: &Name, value: &Value) -> Result<()> {
    let len = value.data().len();
    if len <= MAX_VALUE {
        return Ok(());
    }
    let message = BadBind::Data { name: name.clone(), len }.to_string();
    let error = tenure_store::Error::new(ErrorKind::Invalid, message);
    Err(error.remedy("keep the data elsewhere, and publish where it is").into())
}

pub(crate) fn refused(answer: NameAnswer) -> NameError {
    match answer {
        NameAnswer::Taken(binding) => NameError::Taken(Box::new(binding)),
        NameAnswer::Bound { binding, .. } => NameError::Gone(Some(Box::new(binding))),
        NameAnswer::Gone(there) => NameError::Gone(there.map(Box::new)),
        NameAnswer::Fenced { newest } => NameError::Fenced { newest: newest.get() },
        NameAnswer::ShutDown => NameError::Other(Error::ShutDown),
    }
}

/// A name that this process owns. Ask [`is_current`](Self::is_current) before each side
/// effect. Dropped, the name is given back.
#[derive(Debug)]
#[must_use = "dropping it gives the name back"]
pub struct Registration {
    owned: Arc<Owned>,
    shared: Arc<Shared>,
}

impl Registration {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.owned.name()
    }

    /// The fencing token: higher than any that the name had before.
    #[must_use]
    pub fn token(&self) -> Token {
        self.owned.token()
    }

    /// The binding, as it was last confirmed.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.owned.binding()
    }

    /// Whether the name is this process's at this moment. Reads two atomics and the clock.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.shared.time.now() < self.owned.trusted_until()
    }

    /// A kernel lock for another process that works under this name: see
    /// [`Leadership::liveness_lock`](crate::Leadership::liveness_lock).
    #[cfg(unix)]
    #[must_use]
    pub fn liveness_lock(&self) -> Option<std::os::fd::OwnedFd> {
        let owner = self.owned.binding().owner?;
        self.shared.connection.locks.of(owner.incarnation)
    }

    /// How long that holds, if nothing is heard from the store any more.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.owned.trusted_until().since(self.shared.time.now())
    }

    /// Until when that holds, on this machine's boot-time clock; [`Mono::ZERO`] once the name
    /// is lost.
    #[must_use]
    pub fn trusted_until(&self) -> Mono {
        self.owned.trusted_until()
    }

    /// Waits until the name is lost, and says why. Fires without any request to the store.
    pub async fn lost(&self) -> LostReason {
        self.owned.lost().await
    }

    /// Publishes another value. The token stays.
    pub async fn set(&self, value: Value) -> Result<Binding, NameError> {
        self.change(value, None).await
    }

    /// Publishes another value if the last change of the name had exactly this revision; else
    /// [`NameError::Changed`] says which value is there. For tasks of one process that share
    /// a name.
    pub async fn set_if(&self, expect: Rev, value: Value) -> Result<Binding, NameError> {
        self.change(value, Some(expect)).await
    }

    async fn change(&self, value: Value, expect: Option<Rev>) -> Result<Binding, NameError> {
        let token = self.token();
        match self.ask(NameWish::Change { token, expect, value }).await? {
            NameAnswer::Gone(Some(there)) if there.token == token => {
                Err(NameError::Changed(Box::new(there)))
            }
            NameAnswer::Bound { binding, .. } => {
                self.owned.changed_to(binding.clone());
                Ok(binding)
            }
            answer => Err(refused(answer)),
        }
    }

    /// Gives the name back, and waits for the store's confirmation. From the call on,
    /// [`is_current`](Self::is_current) is false.
    pub async fn release(self) -> Result<(), NameError> {
        let token = self.token();
        match self.ask(NameWish::Drop { token }).await? {
            NameAnswer::Gone(_) => Ok(()),
            // Leaving gives everything back.
            NameAnswer::ShutDown => Ok(()),
            answer => Err(refused(answer)),
        }
    }

    async fn ask(&self, wish: NameWish) -> Result<NameAnswer, NameError> {
        let names = Names { shared: self.shared.clone() };
        let asked = names.ask([(self.name().clone(), wish, None)])?;
        let waiting = asked.into_iter().next().ok_or(Error::ShutDown)?;
        waiting.answer(names.patience()).await
    }

    /// The binding with the store that gave it out, as a fence takes it.
    fn fenced(&self) -> Result<Fenced<'_>, FenceError> {
        let client = &self.shared.client;
        let store = &client.first_capabilities().identity;
        let name = self.name();
        let token = self.token();
        match self.owned.owner() {
            Some(owner) => {
                Ok(FencedName { store, ns: client.namespace(), name, token, owner }.into())
            }
            // What a member has registered has an owner.
            None => Err(FenceError::NameOver { name: name.clone(), token, newest: None }),
        }
    }

    /// Proves in the caller's own transaction that the name is bound under this token, and
    /// holds it still until the transaction ends. Roll back on an error. What
    /// [`Leadership::fence`] says of transactions and stores holds here too; while the
    /// transaction is open, [`set`](Self::set) and [`release`](Self::release) wait for it.
    pub async fn fence<T: FenceIn<Via>, Via>(&self, transaction: &mut T) -> Result<(), FenceError> {
        transaction.fence_in(self.fenced()?).await
    }

    /// [`fence`](Self::fence) for drivers that block, as rusqlite does: see
    /// [`Leadership::fence_blocking`].
    pub fn fence_blocking<T: FenceBlocking<Via>, Via>(
        &self,
        transaction: &T,
    ) -> Result<(), FenceError> {
        transaction.fence_blocking(self.fenced()?)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let name = self.name().clone();
        let token = self.token();
        // A driver that is gone has left, and with it the name.
        let _ = self.shared.send(Command::LetGoOfName { name, token });
    }
}
