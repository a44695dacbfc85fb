//! Connections to endpoints: made once for all calls, ahead of them where a leader is expected.
//!
//! # The interleavings
//!
//! - **Calls with deadlines shorter than a connection takes.** A connection is made by a task of
//!   its own, which no call's end stops: the next call finds it further on.
//! - **The first endpoint swallows packets.** The next is tried a quarter of a second later,
//!   beside it, and the first that is connected is used.
//! - **A connection breaks while calls use it.** tonic's channel makes it again for the next call.
//!   If it cannot, that call is provably not sent; the connection is marked as broken, and all
//!   endpoints are tried again, beginning with the next.
//! - **The same endpoint in two terms.** Connections belong to addresses, not to terms: a leader
//!   that is elected again, or that was prewarmed as the heir, is connected already.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tonic::transport::{Channel, Endpoint};

use crate::address;

/// How long the whole of a connection may take, with TLS.
const LIMIT: Duration = Duration::from_secs(5);
/// After this the next endpoint is tried beside the one before.
const STAGGER: Duration = Duration::from_millis(250);

/// What the application sets on each endpoint.
pub(crate) type Settings =
    Arc<dyn Fn(Endpoint) -> Result<Endpoint, tonic::transport::Error> + Send + Sync>;

/// How a connection came out.
type Made = Result<Channel, Arc<str>>;

/// One endpoint of a member.
pub(crate) struct Connection {
    endpoint: Endpoint,
    address: String,
    runtime: Handle,
    state: Mutex<State>,
}

enum State {
    Idle,
    Connecting(watch::Receiver<Option<Made>>),
    Up(Channel),
}

impl Connection {
    /// The channel, if it is connected.
    pub(crate) fn up(&self) -> Option<Channel> {
        match &*self.lock() {
            State::Up(channel) => Some(channel.clone()),
            _ => None,
        }
    }

    /// Begins to connect, unless it is or does.
    pub(crate) fn warm(self: &Arc<Self>) {
        drop(self.begin());
    }

    /// A call could not be sent: what is there is given up.
    pub(crate) fn broke(&self) {
        let mut state = self.lock();
        if let State::Up(_) = &*state {
            *state = State::Idle;
        }
    }

    /// Waits for the connection, which goes on being made if this wait is dropped.
    async fn connect(self: &Arc<Self>) -> Made {
        let Some(mut waits) = self.begin() else {
            return self.up().ok_or_else(|| Arc::from("the connection broke at once"));
        };
        let made = waits.wait_for(Option::is_some).await;
        match made.as_deref() {
            Ok(Some(made)) => made.clone(),
            _ => Err(Arc::from("the runtime of the channel has ended")),
        }
    }

    /// Who waits for it; `None` if it is up.
    fn begin(self: &Arc<Self>) -> Option<watch::Receiver<Option<Made>>> {
        let mut state = self.lock();
        match &*state {
            State::Up(_) => None,
            State::Connecting(waits) => Some(waits.clone()),
            State::Idle => {
                let (tell, waits) = watch::channel(None);
                *state = State::Connecting(waits.clone());
                drop(state);
                let this = self.clone();
                self.runtime.spawn(async move {
                    let made = this.make().await;
                    let now = made.clone().map_or(State::Idle, State::Up);
                    *this.lock() = now;
                    // Those who waited may be gone.
                    drop(tell.send(Some(made)));
                });
                Some(waits)
            }
        }
    }

    async fn make(&self) -> Made {
        match tokio::time::timeout(LIMIT, self.endpoint.connect()).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(error)) => Err(format!("{}: {}", self.address, causes(&error)).into()),
            Err(_) => Err(format!("{}: not connected within {LIMIT:?}", self.address).into()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error with what it came of: tonic's own text says "transport error" and no more.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text
}

/// Connects to the first of these that answers, in their order from `first` on. The answer says
/// which it is, or what each of them said.
pub(crate) async fn first_of(
    connections: &[Arc<Connection>],
    first: usize,
) -> Result<(usize, Channel), String> {
    let order: Vec<usize> =
        (0..connections.len()).map(|n| (first + n) % connections.len()).collect();
    let mut waiting = order.into_iter();
    let mut tries = FuturesUnordered::new();
    let mut said = Vec::new();
    let mut next = waiting.next();
    loop {
        if let Some(index) = next.take() {
            let connection = connections[index].clone();
            tries.push(async move { (index, connection.connect().await) });
        }
        let stagger = async {
            if waiting.len() == 0 {
                std::future::pending().await
            } else {
                tokio::time::sleep(STAGGER).await
            }
        };
        tokio::select! {
            biased;
            made = tries.next() => match made {
                Some((index, Ok(channel))) => return Ok((index, channel)),
                Some((_, Err(error))) => {
                    said.push(error.to_string());
                    next = waiting.next();
                }
                None => return Err(said.join("; ")),
            },
            () = stagger => next = waiting.next(),
        }
    }
}

/// All connections of a channel, by address.
pub(crate) struct Connections {
    settings: Settings,
    tls: bool,
    runtime: Handle,
    open: HashMap<String, Arc<Connection>>,
}

impl Connections {
    pub(crate) fn new(settings: Settings, tls: bool, runtime: Handle) -> Self {
        Self { settings, tls, runtime, open: HashMap::new() }
    }

    /// The connections to these endpoints, in their order, and what is wrong with the others.
    pub(crate) fn to(&mut self, endpoints: &[String]) -> (Vec<Arc<Connection>>, Vec<String>) {
        let mut connections = Vec::new();
        let mut wrong = Vec::new();
        for endpoint in endpoints {
            match self.one(endpoint) {
                Ok(connection) => connections.push(connection),
                Err(why) => wrong.push(why),
            }
        }
        (connections, wrong)
    }

    fn one(&mut self, endpoint: &str) -> Result<Arc<Connection>, String> {
        if let Some(open) = self.open.get(endpoint) {
            return Ok(open.clone());
        }
        let uri = address::uri(endpoint, self.tls)?;
        let address = uri.authority().map(ToString::to_string).unwrap_or_default();
        let set = prepared(&self.settings, uri)?;
        let state = Mutex::new(State::Idle);
        let connection =
            Arc::new(Connection { endpoint: set, address, runtime: self.runtime.clone(), state });
        self.open.insert(endpoint.to_owned(), connection.clone());
        Ok(connection)
    }

    /// Closes all but these, once the calls on them have ended.
    pub(crate) fn keep(&mut self, wanted: &[Arc<Connection>]) {
        self.open.retain(|_, open| wanted.iter().any(|wanted| Arc::ptr_eq(open, wanted)));
    }
}

/// An endpoint with our defaults, and what the application says after them.
pub(crate) fn prepared(settings: &Settings, uri: http::Uri) -> Result<Endpoint, String> {
    let endpoint = Endpoint::from(uri.clone())
        .connect_timeout(Duration::from_secs(2))
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(5));
    let set = settings(endpoint).map_err(|error| causes(&error))?;
    if *set.uri() != uri {
        return Err(format!(
            "the endpoint {uri} was replaced by {}: change its settings, not its address",
            set.uri()
        ));
    }
    Ok(set)
}
