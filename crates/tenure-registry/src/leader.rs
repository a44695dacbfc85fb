//! The leader of a scope, its members, and work that runs in one process of them.

use std::convert::Infallible;

use tenure::naming::{NameError, Value};
use tenure::{Election, Holder, LeadError, Leadership, MemberView, Stopping, TermNumber};

use crate::registry::SEPARATOR;
use crate::{RegisterError, Registered, Registry};

impl Registry {
    /// Runs `work` in one process at a time, and publishes that process under the name: an
    /// election of the scope's and the name's, and its binding under the fence of the term.
    /// Returns when the work does; if the leadership is lost first, it stands again.
    ///
    /// The work runs as under [`Election::lead`](tenure::Election::lead): it is cancelled the
    /// moment the leadership is lost; asked to stop, [`Leadership::stopping`] fires inside, and
    /// it may finish within the drain; the term is released after it. The name is given back
    /// when the work has ended, before the term: a process that is found under it leads.
    ///
    /// The work begins when the name is registered. As long as another process has it, this
    /// one waits, and leads meanwhile: a predecessor whose drop of the name is on its way, or
    /// a process that registered the name by itself.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let here = Value::at("10.0.0.7:9000")?;
    /// let done = names.singleton("billing", here, |leadership| async move {
    ///     assert!(leadership.is_current());
    ///     "done"
    /// });
    /// assert_eq!(done.await?, "done");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn singleton<W, F, T>(
        &self,
        name: &str,
        value: Value,
        mut work: W,
    ) -> Result<T, RegisterError>
    where
        W: FnMut(Leadership) -> F,
        F: Future<Output = T>,
    {
        let full = self.full(name)?;
        let capabilities = self.tenure().capabilities();
        if !capabilities.keeps_names().map_err(tenure::Error::from)?.fenced {
            return Err(tenure::Error::from(capabilities.without_fence()).into());
        }
        let election = self.tenure().election(full.as_str());
        loop {
            let work = &mut work;
            let value = value.clone();
            let reign = election.lead(|leadership| async move {
                Ok::<_, Infallible>(self.publish_and_run(name, value, leadership, work).await)
            });
            match reign.await {
                Ok(Ok(Some(done))) => return Ok(done),
                Ok(Err(error)) => return Err(error),
                Err(LeadError::Campaign(error)) => return Err(error.into()),
                Err(LeadError::Panicked(text)) => return Err(RegisterError::Panicked(text)),
                // It ended before the work did, or before it began: stand again.
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    }

    /// One term of a singleton; `None` if it is over before the name is registered.
    async fn publish_and_run<W, F, T>(
        &self,
        name: &str,
        value: Value,
        leadership: Leadership,
        work: &mut W,
    ) -> Result<Option<T>, RegisterError>
    where
        W: FnMut(Leadership) -> F,
        F: Future<Output = T>,
    {
        let Some(taken) = self.publish(name, value, &leadership).await? else { return Ok(None) };
        let done = run_published(&taken, leadership, work).await;
        match taken.release().await {
            // It is over with the life, or will be when the store can be reached.
            Ok(()) | Err(RegisterError::Gone(_) | RegisterError::Unknown { .. }) => Ok(Some(done)),
            Err(error) => Err(error),
        }
    }

    /// Registers the name under the fence of the term, and waits while another has it. `None`
    /// if the leadership is asked to stop, or over, before.
    async fn publish(
        &self,
        name: &str,
        value: Value,
        leadership: &Leadership,
    ) -> Result<Option<Registered>, RegisterError> {
        let full = self.full(name)?;
        let mut waiter = self.waiter(full.clone());
        loop {
            let names = self.names();
            waiter.asks();
            let answer = names.take_fenced(full.clone(), value.clone(), leadership).await;
            if let Ok(_) | Err(NameError::Taken(_)) = &answer {
                waiter.is_answered();
            }
            let binding = match answer {
                Ok(taken) => return Ok(Some(self.registered(taken).await)),
                Err(NameError::Taken(binding)) => binding,
                Err(NameError::Fenced { .. } | NameError::Gone(_)) => return Ok(None),
                // Nothing of it stays: see `NameError::Unknown`.
                Err(NameError::Unknown { .. }) if leadership.is_current() => continue,
                Err(error) => return Err(error.into()),
            };
            tracing::info!(target: "tenure", name, token = binding.token.get(), "a singleton waits for its name, which another has");
            tokio::select! {
                () = self.freed(&binding, &waiter) => {}
                _ = leadership.stopping() => return Ok(None),
            }
        }
    }

    /// The election for the leader of the scope.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let leadership = names.leader_election().campaign().await?;
    /// assert_eq!(names.leader().await?.map(|leader| leader.member.id).as_ref(), Some(tenure.id()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn leader_election(&self) -> Election {
        self.tenure().election(self.leader_key())
    }

    /// The name of that election: other languages find the leader under it. It says nothing
    /// of a store: in which row and by which notifications other programs find it there
    /// depends on the store and its schema, and is told in `docs/registry.md`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let sessions = tenure_registry::Registry::open(&tenure, "sessions")?;
    /// assert_eq!(sessions.leader_key(), "registry:sessions");
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn leader_key(&self) -> String {
        format!("registry{SEPARATOR}{}", self.scope_name())
    }

    /// Stands for the leadership of the scope until the [`Standing`] is dropped, again after
    /// every loss. Asked to step down it does so at once: the scope's leader does no work.
    ///
    /// This member stands only if the application says so here. No registration needs a leader, and
    /// a candidacy for each scope and process is what a program with many scopes would pay for
    /// nothing. Where other work is to follow the leader, lead
    /// [`leader_election`](Self::leader_election) instead.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let standing = names.stand()?;
    /// while names.leader().await?.is_none() {
    ///     tokio::task::yield_now().await;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stand(&self) -> Result<Standing, RegisterError> {
        let election = self.leader_election();
        election.name()?;
        let task = tokio::spawn(async move {
            let idle = |leadership: Leadership| async move {
                let _: Stopping = leadership.stopping().await;
                Ok::<_, std::convert::Infallible>(std::ops::ControlFlow::<()>::Continue(()))
            };
            if let Err(error) = election.lead_always(idle).await {
                tracing::debug!(target: "tenure", %error, "no longer stands for the scope");
            }
        });
        Ok(Standing { task: task.abort_handle() })
    }

    /// Who leads the scope, if a member does, from the store. No registration depends on it.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// assert!(names.leader().await?.is_none()); // no process stands
    /// # Ok(())
    /// # }
    /// ```
    pub async fn leader(&self) -> Result<Option<Holder>, RegisterError> {
        Ok(self.leader_election().leader().await?)
    }

    /// The number of the scope's newest term, from the store: it rises with every leader.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let before = names.epoch().await?;
    /// let leadership = names.leader_election().campaign().await?;
    /// assert!(names.epoch().await? > before);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn epoch(&self) -> Result<TermNumber, RegisterError> {
        Ok(self.leader_election().view().await?.number)
    }

    /// The live members of the namespace as this process knows them, without a request: one
    /// that joined is here within a heartbeat, one that is gone has gone with its ttl.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// names.ready().await?;
    /// let ids: Vec<_> = names.members().into_iter().map(|view| view.member.id).collect();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn members(&self) -> Vec<MemberView> {
        let members = self.follower().members.load();
        let now = self.tenure().now();
        let lives = |view: &&MemberView| members.asked + view.remaining > now;
        members.views.iter().filter(lives).cloned().collect()
    }

    /// The live members of the namespace, from the store.
    ///
    /// ```
    /// # use tenure::Tenure;
    /// # use tenure::naming::Value;
    /// # use tenure_registry::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tenure = Tenure::connect("memory:").await?;
    /// # let names = Registry::open(&tenure, "orders")?;
    /// let mine = names.register("user/42", Value::empty()).await?;
    /// assert_eq!(names.members_consistent().await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn members_consistent(&self) -> Result<Vec<MemberView>, RegisterError> {
        Ok(self.tenure().members().await?)
    }
}

/// Runs the work. If the name is lost although the term is not, which only a store does that
/// was rolled back, the work is asked to stop: no caller finds it any more.
async fn run_published<W, F, T>(taken: &Registered, leadership: Leadership, work: &mut W) -> T
where
    W: FnMut(Leadership) -> F,
    F: Future<Output = T>,
{
    let stop = leadership.clone();
    let done = work(leadership);
    tokio::pin!(done);
    tokio::select! {
        biased;
        done = &mut done => return done,
        _ = taken.lost() => {}
    }
    // A member that is shut down has asked it already.
    let _ = stop.stop();
    drop(stop);
    done.await
}

/// A candidacy for the leadership of a scope, from [`Registry::stand`].
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// let standing = names.stand()?;
/// drop(standing); // it does not stand any more
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it withdraws"]
pub struct Standing {
    task: tokio::task::AbortHandle,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.task.abort();
    }
}
