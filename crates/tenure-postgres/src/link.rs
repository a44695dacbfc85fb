//! A link: a place for one session, made again when it broke.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_store::Result;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{self, Effect, Fate};
use crate::options::PostgresOptions;
use crate::owners;
use crate::schema::quoted;
use crate::session::Session;
use crate::watch::Notifications;

/// What a link is for.
///
/// A session does one thing after the other: a long claim, or one that waits for
/// a lock, would hold up a heartbeat behind it, so heartbeats have a session of
/// their own. Notifications arrive where the requests are made. There they wait
/// for a request that is under way, but the server has one process less to wake
/// for each, and the one that was notified of a vacancy is the one that is asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Requests,
    Heartbeats,
}

#[derive(Debug)]
pub(crate) struct Link {
    purpose: Purpose,
    options: Arc<PostgresOptions>,
    notifications: Arc<Notifications>,
    session: Mutex<Option<Arc<Session>>>,
    /// Held while connecting, so that those who come meanwhile share the result.
    connecting: tokio::sync::Mutex<()>,
}

/// A parameter with its type, so that no statement has to be prepared first: one
/// round trip, and right behind a pooler too.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A statement that is sent again and again.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The verb, which any role that takes part may call.
    pub(crate) call: String,
    /// What it does, in fewer steps, for the owner of the schema.
    pub(crate) owner: Option<String>,
}

impl Prepared {
    fn on(&self, session: &Session) -> &str {
        let owner = self.owner.as_deref().filter(|_| session.acts_as_owner());
        owner.unwrap_or(&self.call)
    }
}

impl Link {
    pub(crate) fn new(
        purpose: Purpose,
        options: Arc<PostgresOptions>,
        notifications: Arc<Notifications>,
    ) -> Self {
        let session = Mutex::new(None);
        let connecting = tokio::sync::Mutex::new(());
        Self { purpose, options, notifications, session, connecting }
    }

    /// The session that stands, if one does.
    pub(crate) fn present(&self) -> Option<Arc<Session>> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().filter(|s| !s.client.is_closed()).cloned()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.present().is_some()
    }

    /// The session, made if there is none. Bounded by the request timeout.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        match self.present() {
            Some(session) => Ok(session),
            // Apart: it takes kilobytes, which every request would have to keep.
            None => Box::pin(self.made()).await,
        }
    }

    async fn made(&self) -> Result<Arc<Session>> {
        let _turn = self.connecting.lock().await;
        if let Some(session) = self.present() {
            return Ok(session);
        }
        let limit = self.options.request_timeout;
        let made = tokio::time::timeout(limit, self.connect()).await;
        let session = made
            .unwrap_or_else(|_| {
                Err(error::timed_out("connecting to PostgreSQL", Effect::None, limit))
            })
            .map(Arc::new)?;
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
        if self.purpose == Purpose::Requests {
            self.notifications.reconnected();
        }
        Ok(session)
    }

    async fn connect(&self) -> Result<Session> {
        // Only where it was listened for does a notification prove anything: a
        // pooler may hand the listening session to the one that notifies.
        let notifications = (self.purpose == Purpose::Requests).then_some(&self.notifications);
        let session = Session::connect(&self.options, notifications).await?;
        owners::check(&session.client, &self.options).await?;
        if self.notifications.is_native() {
            self.set_up(&session).await?;
        }
        if self.purpose == Purpose::Requests && self.options.listen {
            self.listen(&session).await?;
        }
        Ok(session)
    }

    /// Has the server send notifications to this session; a second time is no harm.
    pub(crate) async fn listen(&self, session: &Session) -> Result<()> {
        let listen = format!("LISTEN {}", quoted(&self.options.schema));
        let listening = session.client.batch_execute(&listen).await;
        listening.map_err(|e| error::of_request("listening", Effect::None, e).0)
    }

    /// Sets up a session that is ours alone.
    pub(crate) async fn set_up(&self, session: &Session) -> Result<()> {
        session.set_up(&self.options).await?;
        if self.purpose == Purpose::Requests {
            session.set_up_as_owner(&self.options).await?;
        }
        Ok(())
    }

    /// Gives a session up, unless it was replaced already.
    pub(crate) fn discard(&self, broken: &Arc<Session>) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.as_ref().is_some_and(|s| Arc::ptr_eq(s, broken)) {
            *session = None;
        }
    }

    /// Closes the session that stands, if one does.
    pub(crate) fn close(&self) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// One request, one round trip. A commit that found the queue of notifications full is
    /// repeated once: it was not applied, and it looks whether to notify before it does.
    pub(crate) async fn ask(
        &self,
        doing: &str,
        effect: Effect,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        let session = self.session().await?;
        let asked = pin!(session.client.query_typed(sql, params));
        let answer = self.within(doing, effect, &session, asked).await;
        match answer {
            Err(error) if error::is_queue_full(&error) => {
                let asked = pin!(session.client.query_typed(sql, params));
                self.within(doing, effect, &session, asked).await
            }
            answer => answer,
        }
    }

    /// One request of a kind that is sent again and again.
    pub(crate) async fn ask_prepared(
        &self,
        doing: &str,
        effect: Effect,
        sql: &Prepared,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>> {
        if !self.notifications.is_native() {
            return Box::pin(self.ask(doing, effect, &sql.call, params)).await;
        }
        let session = self.session().await?;
        let mut asked = Box::pin(session.ask_prepared(sql.on(&session), params));
        match self.within(doing, effect, &session, asked.as_mut()).await {
            Err(error) if error::is_queue_full(&error) => {
                Box::pin(self.ask(doing, effect, &sql.call, params)).await
            }
            answer => answer,
        }
    }

    /// Waits for an answer for as long as a request may take. A session that
    /// does not answer, or says that it is of no more use, is given up: the next
    /// request goes to a fresh one, and with several hosts perhaps to another.
    ///
    /// What was asked comes pinned: handed down by value, it would be kept, and
    /// moved, once for each function on the way.
    pub(crate) async fn within<T>(
        &self,
        doing: &str,
        effect: Effect,
        session: &Arc<Session>,
        asked: Pin<&mut impl Future<Output = Result<T, tokio_postgres::Error>>>,
    ) -> Result<T> {
        let limit = self.options.request_timeout;
        let warned = session.warnings();
        match timeout(limit, asked).await {
            // Committed here, and perhaps on no standby.
            Ok(Ok(_)) if effect == Effect::Writes && session.warnings() != warned => {
                Err(error::warned(doing))
            }
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let (error, fate) = error::of_request(doing, effect, error);
                if fate == Fate::Broken {
                    self.discard(session);
                }
                Err(error)
            }
            Err(_) => {
                self.discard(session);
                Err(error::timed_out(doing, effect, limit))
            }
        }
    }
}
