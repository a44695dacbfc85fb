//! One session with the server: a client, and the task that carries for it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_store::Result;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Row, Statement};

use crate::link::Param;
use crate::options::{PostgresOptions, SslMode};
use crate::tls::MakeTls;
use crate::watch::Hub;
use crate::{error, schema};

/// A session. Dropping it ends the connection at once: what was in flight may
/// or may not have been applied.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The heartbeat, prepared; `None` where it goes by the function.
    pub(crate) beat: OnceCell<Option<Statement>>,
    /// Set once it is set up for what only the schema's owner may do.
    owns: AtomicBool,
    /// Statements that are sent often, prepared, by their texts.
    often: Mutex<HashMap<String, Statement>>,
    carrier: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

impl Session {
    /// Connects to the first host that is up and, unless the URL says
    /// otherwise, takes writes. Notifications go to the hub, if one is given.
    pub(crate) async fn connect(options: &PostgresOptions, hub: Option<&Arc<Hub>>) -> Result<Self> {
        use tokio_postgres::config::SslMode as Driver;
        let mut config = options.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.request_timeout);
        }
        config.ssl_mode(match options.ssl {
            SslMode::Disable => Driver::Disable,
            SslMode::Prefer => Driver::Prefer,
            _ => Driver::Require,
        });
        let failed = |error| error::of_connect("connecting to PostgreSQL", &error);
        let (client, carrier) = if options.ssl == SslMode::Disable {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            (client, tokio::spawn(carry(connection, hub.cloned())))
        } else {
            let tls = MakeTls::new(options)?;
            let (client, connection) = config.connect(tls).await.map_err(failed)?;
            (client, tokio::spawn(carry(connection, hub.cloned())))
        };
        let (beat, owns, often) = (OnceCell::new(), AtomicBool::new(false), Mutex::default());
        Ok(Self { client, beat, owns, often, carrier })
    }

    /// Asks what is asked often: prepared, which spares the server half of the
    /// work. The first time it is sent both ways at once, so that this too is one
    /// round trip. Only for a session that is ours alone.
    pub(crate) async fn ask_often(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let known = self.often().get(sql).cloned();
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
            self.often().insert(sql.to_owned(), statement);
        }
        answer
    }

    fn often(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.often.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what holds for the whole session. Only for one that is ours alone:
    /// behind a transaction pooler it would reach other clients. Statements are
    /// calls and updates by key, for which one plan is as good as another and a
    /// new one for each call only costs.
    pub(crate) async fn own(&self, options: &PostgresOptions) -> Result<()> {
        let millis = options.request_timeout.as_millis();
        let text = format!(
            "SET statement_timeout = {millis}; \
             SET default_transaction_isolation = 'read committed'; \
             SET plan_cache_mode = force_generic_plan; \
             SELECT set_config('synchronous_commit', 'on', false) \
             WHERE current_setting('synchronous_commit') = 'off'"
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
    pub(crate) fn owns(&self) -> bool {
        self.owns.load(Ordering::Acquire)
    }

    /// Sets it up for that, if it is the owner's: what a verb does for others in the
    /// owner's name, by settings of its own, is then done without. Not for a role
    /// that only shares the owner's rights: what the server tells it of itself may
    /// be something else than what it tells the owner.
    pub(crate) async fn own_as_owner(&self, options: &PostgresOptions) -> Result<()> {
        let set = async {
            if self.may("owns", &options.schema).await? {
                let (wait, planned) = (options.lock_wait(), schema::planned(&options.schema));
                let text = format!("SET lock_timeout = {wait}; {planned}");
                self.client.batch_execute(&text).await?;
                self.owns.store(true, Ordering::Release);
            }
            Ok(())
        };
        set.await.map_err(|e| error::of_request("setting up a session", error::Effect::None, e).0)
    }
}

/// Carries messages until the connection ends, and passes notifications on.
async fn carry<S, T>(mut connection: Connection<S, T>, hub: Option<Arc<Hub>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(note))) => {
                hub.iter().for_each(|hub| hub.heard(&note));
            }
            Some(Ok(AsyncMessage::Notice(notice))) => {
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
    hub.iter().for_each(|hub| hub.parted());
}
