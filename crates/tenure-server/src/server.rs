//! Starting and stopping.
//!
//! Stopping has two phases. First the clients are asked to stop, while everything is still
//! answered: `/readyz` says that this server is going, sessions are *stopping*, and drain. When
//! all have resigned, or their drain is over, the listeners close.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tenure::{Left, Tenure};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::access::Hosts;
use crate::board::Board;
use crate::front::Front;
use crate::hub::{self, Hub};
use crate::listen::{Address, Bind, Bound};
use crate::measured::Measured;
use crate::once::Keys;
use crate::options::Options;
use crate::routes;
use crate::sessions::Sessions;
use crate::stands::Stands;
use crate::{App, Error};

/// How many sessions there may be, unless the options say otherwise.
const SESSIONS: usize = 10_000;

/// How many connections there may be, unless the options say otherwise.
const CONNECTIONS: usize = 20_000;
/// How often the server looks whether its member has joined.
const LOOK: Duration = Duration::from_millis(20);

/// A server that runs.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure_server::{Options, Server};
///
/// let member = tenure::Tenure::builder("memory:");
/// let server = Server::start(member, Options::new().stand_for("nightly")).await?;
/// println!("the dashboard is at {}", server.addresses()[0]);
/// server.stop().await?;
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    addresses: Vec<Address>,
    compat: Option<Address>,
    tasks: JoinSet<()>,
    /// Whether it was stopped in order.
    stopped: bool,
}

impl Server {
    /// Begins to listen, and becomes a member of the store. While the store is waited for
    /// ([`Builder::wait_for_store`](tenure::Builder::wait_for_store)) `/livez` is answered, and
    /// everything else refused with a reason. The member's death cannot be proven
    /// (see [`Builder::prove_death`](tenure::Builder::prove_death)): clients trust in what the
    /// server told them also when it has died.
    ///
    /// Must be called in a tokio runtime with I/O and time enabled.
    pub async fn start(member: tenure::Builder, options: Options) -> Result<Self, Error> {
        options.check()?;
        let tls = options.tls.as_ref().map(crate::ServerTls::acceptor).transpose()?;
        let bounds = bound(&options).await?;
        let old_style = match options.compat {
            Some(address) => Some(Bound::new(&Bind::Tcp(address)).await?),
            None => None,
        };
        let addresses: Vec<_> = bounds.iter().map(|bound| bound.address(tls.is_some())).collect();
        let compat = old_style.as_ref().map(|bound| bound.address(false));
        let hosts = Hosts::new(&options.hosts);
        let close = watch::Sender::new(false);
        let share = options.max_connections.unwrap_or(CONNECTIONS) / (bounds.len() + 1);
        let fronts = [Front::new(&hosts), Front::new(&hosts)];
        let mut tasks = JoinSet::new();
        for bound in bounds {
            let tls = tls.clone();
            tasks.spawn(bound.serve(fronts[0].clone(), tls, share.max(1), close.subscribe()));
        }
        if let Some(bound) = old_style {
            let front = fronts[1].clone();
            tasks.spawn(bound.serve(front, None, share.max(1), close.subscribe()));
        }

        let measured = Arc::new(Measured::new());
        let tenure = member.prove_death(false).trusted_elsewhere().metrics(measured.clone());
        let tenure = tenure.connect().await?;
        tenure.join()?;
        let app = app(&tenure, &options, measured, hosts, close);
        app.stands.begin(&tenure, &options.stand, &app.stop).await?;
        fronts[0].start(routes::router(app.clone()));
        fronts[1].start(routes::compat::router(app.clone(), options.stand.first()));
        tasks.spawn(hub::follow(app.clone()));
        Ok(Self { app, addresses, compat, tasks, stopped: false })
    }

    /// Returns when the server's member is in the store: from then on the server is ready, for as
    /// long as the store answers.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tenure_server::{Options, Server};
    ///
    /// let server = Server::start(tenure::Tenure::builder("memory:"), Options::new()).await?;
    /// server.joined().await;
    /// assert!(server.member().status().member.is_some());
    /// server.stop().await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn joined(&self) {
        // There is no word for it: the state is looked at.
        let mut look = tokio::time::interval(LOOK);
        while self.app.tenure.status().member.is_none() {
            look.tick().await;
        }
    }

    /// Where it listens, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where it answers as older sidecars did.
    #[must_use]
    pub fn compat_address(&self) -> Option<&Address> {
        self.compat.as_ref()
    }

    /// The server's own member.
    #[must_use]
    pub fn member(&self) -> &Tenure {
        &self.app.tenure
    }

    /// Asks every client to stop, waits until they have or what they were granted has ended,
    /// gives up what the server itself leads, and closes.
    ///
    /// A server that is dropped instead does the same for its store without waiting for it, and
    /// answers no client any more: its clients' trust runs out.
    pub async fn stop(mut self) -> Result<Left, Error> {
        self.stopped = true;
        self.app.stop.send_replace(true);
        tokio::join!(self.app.sessions.close(), self.app.stands.ended());
        let left = self.app.tenure.shutdown().await?;
        self.app.close.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        Ok(left)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.stopped {
            self.app.stop.send_replace(true);
            self.app.close.send_replace(true);
            self.app.sessions.abandon();
            // The first poll tells the member's own loop.
            let _ = self.app.tenure.shutdown().now_or_never();
        }
    }
}

async fn bound(options: &Options) -> Result<Vec<Bound>, Error> {
    let anywhere = [Bind::Tcp(([127, 0, 0, 1], 0).into())];
    let binds = if options.binds.is_empty() { &anywhere[..] } else { &options.binds };
    let mut bounds = Vec::new();
    for bind in binds {
        bounds.push(Bound::new(bind).await?);
    }
    Ok(bounds)
}

fn app(
    tenure: &Tenure,
    options: &Options,
    measured: Arc<Measured>,
    hosts: Hosts,
    close: watch::Sender<bool>,
) -> Arc<App> {
    Arc::new(App {
        tenure: tenure.clone(),
        board: Board::new(tenure.clone()),
        sessions: Arc::new(Sessions::new(
            tenure.clone(),
            measured.clone(),
            options.max_sessions.unwrap_or(SESSIONS),
        )),
        stands: Stands::default(),
        hub: Hub::default(),
        tokens: options.tokens(),
        hosts,
        is_tls: options.tls.is_some(),
        measured,
        keys: Keys::default(),
        stop: watch::Sender::new(false),
        close,
    })
}
