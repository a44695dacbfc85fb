//! Starting and stopping.
//!
//! Stopping has two phases. First the clients are asked to stop, while everything is still
//! answered: `/readyz` says that this server is going, sessions are *stopping*, and drain. When
//! all have resigned, or their drain is over, the listeners close.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tenure::{Left, Tenure};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::access::Hosts;
use crate::board::Board;
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
    /// Becomes a member of the store and begins to listen. The member's death cannot be proven
    /// (see [`Builder::prove_death`](tenure::Builder::prove_death)): clients trust in what the
    /// server told them also when it has died.
    ///
    /// Must be called in a tokio runtime with I/O and time enabled.
    pub async fn start(member: tenure::Builder, options: Options) -> Result<Self, Error> {
        options.check()?;
        let tls = options.tls.as_ref().map(crate::ServerTls::acceptor).transpose()?;
        let mut bounds = Vec::new();
        let anywhere = [Bind::Tcp(([127, 0, 0, 1], 0).into())];
        let binds = if options.binds.is_empty() { &anywhere[..] } else { &options.binds };
        for bind in binds {
            bounds.push(Bound::new(bind).await?);
        }
        let old_style = match options.compat {
            Some(address) => Some(Bound::new(&Bind::Tcp(address)).await?),
            None => None,
        };
        let measured = Arc::new(Measured::new());
        let tenure = member.prove_death(false).trusted_elsewhere().metrics(measured.clone());
        let tenure = tenure.connect().await?;
        tenure.join()?;
        let addresses: Vec<_> = bounds.iter().map(|bound| bound.address(tls.is_some())).collect();
        let compat = old_style.as_ref().map(|bound| bound.address(false));
        let app = app(&tenure, &options, measured, &addresses);
        app.stands.begin(&tenure, &options.stand, &app.stop).await?;

        let closing = app.close.subscribe();
        let mut tasks = JoinSet::new();
        let router = routes::router(app.clone());
        for bound in bounds {
            tasks.spawn(bound.serve(router.clone(), tls.clone(), closing.clone()));
        }
        if let Some(bound) = old_style {
            let router = routes::compat::router(app.clone(), options.stand.first());
            tasks.spawn(bound.serve(router, None, closing));
        }
        tasks.spawn(routes::events::stir(app.clone()));
        Ok(Self { app, addresses, compat, tasks, stopped: false })
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

fn app(
    tenure: &Tenure,
    options: &Options,
    measured: Arc<Measured>,
    addresses: &[Address],
) -> Arc<App> {
    let sockets = addresses.iter().filter_map(|address| match address {
        Address::Tcp { at, .. } => Some(*at),
        Address::Unix(_) => None,
    });
    let sockets: Vec<_> = sockets.collect();
    Arc::new(App {
        tenure: tenure.clone(),
        board: Board::new(tenure.clone()),
        sessions: Arc::new(Sessions::new(
            tenure.clone(),
            measured.clone(),
            options.max_sessions.unwrap_or(SESSIONS),
        )),
        stands: Stands::default(),
        tokens: options.tokens(),
        hosts: Hosts::new(&sockets, &options.hosts),
        measured,
        keys: Keys::default(),
        stop: watch::Sender::new(false),
        close: watch::Sender::new(false),
    })
}
