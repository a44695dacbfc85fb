//! One session with the server: a client, and the task that carries for it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_store::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Row, Statement};

use crate::address::Address;
use crate::link::Param;
use crate::options::{PostgresOptions, SslMode};
use crate::tls::MakeTls;
use crate::watch::Notifications;
use crate::{error, options, passfile, schema};

/// A session. Dropping it ends the connection at once: what was in flight may
/// or may not have been applied.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The heartbeat, prepared; `None` where it goes by the verb.
    pub(crate) beat: OnceCell<Option<Statement>>,
    /// Set once it is set up for what only the schema's owner may do.
    as_owner: AtomicBool,
    /// Statements that are sent often, prepared, by their texts.
    statements: Mutex<HashMap<String, Statement>>,
    /// How many warnings the server sent.
    warnings: Arc<AtomicU64>,
    carrier: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

impl Session {
    /// Connects to the first host that is up and, unless the URL says
    /// otherwise, takes writes. What it hears goes to `notifications`, if it listens.
    pub(crate) async fn connect(
        options: &PostgresOptions,
        notifications: Option<&Arc<Notifications>>,
    ) -> Result<Self> {
        let addresses = options.addresses_in_turn();
        let mut failed = None;
        for address in &addresses {
            match Self::connect_to(options, address, addresses.len(), notifications).await {
                Ok(session) => return Ok(session),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::new(ErrorKind::Invalid, "no host is named")))
    }

    async fn connect_to(
        options: &PostgresOptions,
        address: &Address,
        of: usize,
        notifications: Option<&Arc<Notifications>>,
    ) -> Result<Self> {
        use tokio_postgres::config::SslMode as Driver;
        let mut config = options.config.clone();
        address.put_into(&mut config);
        // Each host has its share of the time, so that the last of them has one too.
        if config.get_connect_timeout().is_none() {
            let share = options.request_timeout / u32::try_from(of).unwrap_or(u32::MAX);
            config.connect_timeout(share);
        }
        if config.get_application_name().is_none() {
            let what = if notifications.is_some() { "requests" } else { "heartbeats" };
            config.application_name(options::application_name(what));
        }
        // The file may have changed since the last time.
        let found = match &options.password_source {
            Some(source) => passfile::Found::Password(source.ask().await?),
            None => passfile::find(options, address),
        };
        if let passfile::Found::Password(password) = &found {
            config.password(password);
        }
        config.ssl_mode(match options.ssl {
            SslMode::Disable => Driver::Disable,
            SslMode::Prefer => Driver::Prefer,
            _ => Driver::Require,
        });
        let failed = |error| {
            let doing = format!("connecting to PostgreSQL at {address}");
            let said = error::of_connect(&doing, &error);
            match &found {
                passfile::Found::Ignored(why) if said.kind() == ErrorKind::Denied => {
                    said.remedy(why)
                }
                _ => said,
            }
        };
        let warnings = Arc::new(AtomicU64::new(0));
        let notifications = notifications.cloned();
        let counted = Arc::clone(&warnings);
        // A socket is on this machine: as libpq, it is spoken to in the clear.
        let (client, carrier) = if options.ssl == SslMode::Disable || address.is_socket() {
            config.ssl_mode(Driver::Disable);
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            (client, tokio::spawn(carry(connection, notifications, counted)))
        } else {
            let tls = MakeTls::new(options)?;
            let (client, connection) = config.connect(tls).await.map_err(failed)?;
            (client, tokio::spawn(carry(connection, notifications, counted)))
        };
        let beat = OnceCell::new();
        let as_owner = AtomicBool::new(false);
        let statements = Mutex::default();
        Ok(Self { client, beat, as_owner, statements, warnings, carrier })
    }

    /// How many warnings the server has sent so far.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    /// Asks by a prepared statement, which spares the server half of the
    /// work. The first time it is sent both ways at once, so that this too is one
    /// round trip. Only for a session that is ours alone.
    pub(crate) async fn ask_prepared(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let known = self.statements().get(sql).cloned();
        if let Some(statement) = known {
            let values: Vec<_> = params.iter().map(|(value, _)| *value).collect();
            return self.client.query(&statement, &values).await;
        }
        Box::pin(self.ask_first(sql, params)).await
    }

    async fn ask_first(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let types: Vec<_> = params.iter().map(|(_, of)| of.clone()).collect();
        let asked = self.client.query_typed(sql, params);
        let (answer, prepared) = tokio::join!(asked, self.client.prepare_typed(sql, &types));
        if let Ok(statement) = prepared {
            self.statements().insert(sql.to_owned(), statement);
        }
        answer
    }

    fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what holds for the whole session. Only for one that is ours alone:
    /// behind a transaction pooler it would reach other clients. Statements are
    /// calls and updates by key, for which one plan is as good as another and a
    /// new one for each call only costs.
    pub(crate) async fn set_up(&self, options: &PostgresOptions) -> Result<()> {
        let millis = options.request_timeout.as_millis();
        let text = format!(
            "SET statement_timeout = {millis}; \
             SET default_transaction_isolation = 'read committed'; \
             SET plan_cache_mode = force_generic_plan; \
             SELECT set_config('synchronous_commit', 'on', false) \
             WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply'); \
             SELECT set_config('client_min_messages', 'warning', false) \
             WHERE current_setting('client_min_messages') = 'error'"
        );
        let set = self.client.batch_execute(&text).await;
        set.map_err(|e| error::of_request("setting up a session", error::Effect::None, e).0)
    }

    /// Whether its role has this right: a column of `rights.sql`.
    pub(crate) async fn may(
        &self,
        right: &str,
        schema: &str,
    ) -> Result<bool, tokio_postgres::Error> {
        let rights = self.client.query_typed(&schema::rights(schema), &[]).await?;
        Ok(rights.first().is_some_and(|row| row.try_get(right).unwrap_or(false)))
    }

    /// Whether it is set up for what a verb is made of.
    pub(crate) fn acts_as_owner(&self) -> bool {
        self.as_owner.load(Ordering::Acquire)
    }

    /// Sets it up for that, if it is the owner's: what a verb does for others in the
    /// owner's name, by settings of its own, is then done without. Not for a role
    /// that only shares the owner's rights: what the server tells it of itself may
    /// be something else than what it tells the owner.
    pub(crate) async fn set_up_as_owner(&self, options: &PostgresOptions) -> Result<()> {
        let set = async {
            if self.may("owns", &options.schema).await? {
                let wait = options.lock_wait();
                let planned = schema::planned(&options.schema);
                let text = format!("SET lock_timeout = {wait}; {planned}");
                self.client.batch_execute(&text).await?;
                self.as_owner.store(true, Ordering::Release);
            }
            Ok(())
        };
        set.await.map_err(|e| error::of_request("setting up a session", error::Effect::None, e).0)
    }
}

/// Carries messages until the connection ends, passes notifications on, and counts
/// warnings. The server sends them in the midst of an answer, so that one is counted
/// before the end of that answer is passed on.
async fn carry<S, T>(
    mut connection: Connection<S, T>,
    notifications: Option<Arc<Notifications>>,
    warnings: Arc<AtomicU64>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(note))) => {
                notifications.iter().for_each(|notifications| notifications.heard(&note));
            }
            Some(Ok(AsyncMessage::Notice(notice))) => {
                if *notice.code() == SqlState::WARNING {
                    warnings.fetch_add(1, Ordering::AcqRel);
                }
                tracing::debug!(code = notice.code().code(), "{}", notice.message());
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to PostgreSQL broke");
                break;
            }
            None => break,
        }
    }
    drop(connection);
    notifications.iter().for_each(|notifications| notifications.parted());
}
