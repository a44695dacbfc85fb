//! A TCP proxy of our own: each worker reaches the store through one, which can
//! cut, delay, black-hole and half-close all of its connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::failure::{Doing, Outcome};

/// What data meets on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It passes.
    #[default]
    Pass,
    /// It passes late.
    Late(Duration),
    /// It waits until something else holds.
    Hold,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the worker to the store.
    ToStore,
    /// From the store to the worker.
    ToWorker,
}

#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    flow: Flow,
    /// How often all connections were cut.
    cuts: u64,
    /// How often each direction was closed.
    closed: [u64; 2],
}

impl Weather {
    /// What ends a direction of a connection that began in `self`.
    fn ended_by(&self, now: &Weather, side: Side) -> Option<Ending> {
        if now.cuts != self.cuts {
            return Some(Ending::Cut);
        }
        let side = side as usize;
        (now.closed[side] != self.closed[side]).then_some(Ending::Closed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Cut,
    Closed,
}

/// A proxy; it ends with its runtime.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    weather: watch::Sender<Weather>,
}

impl Proxy {
    /// Listens on a free port and connects to `store` for each connection.
    pub(crate) async fn start(store: SocketAddr) -> Outcome<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.doing(|| "listen on a free port of 127.0.0.1".into())?;
        let port = listener.local_addr().doing(|| "learn the proxy's port".into())?.port();
        let (weather, seen) = watch::channel(Weather::default());
        tokio::spawn(accept(listener, store, seen));
        Ok(Self { port, weather })
    }

    /// Where workers connect to.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What all data meets from now on.
    pub(crate) fn set_flow(&self, flow: Flow) {
        self.weather.send_modify(|weather| weather.flow = flow);
    }

    /// Ends all connections there are.
    pub(crate) fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }

    /// Closes one direction of all connections there are.
    pub(crate) fn half_close(&self, side: Side) {
        self.weather.send_modify(|weather| weather.closed[side as usize] += 1);
    }
}

async fn accept(listener: TcpListener, store: SocketAddr, weather: watch::Receiver<Weather>) {
    loop {
        match listener.accept().await {
            Ok((worker, _)) => drop(tokio::spawn(carry(worker, store, weather.clone()))),
            // Out of descriptors for a moment; the listener is as good as before.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Both directions of one connection. A store that is not there refuses through
/// us: the worker's connection is closed.
async fn carry(worker: TcpStream, store: SocketAddr, mut weather: watch::Receiver<Weather>) {
    let born = *weather.borrow();
    // A connection begun in a black hole waits, too.
    let Ok(_) = weather.wait_for(|now| now.flow != Flow::Hold).await.map(drop) else { return };
    let Ok(store) = TcpStream::connect(store).await else { return };
    drop((worker.set_nodelay(true), store.set_nodelay(true)));
    let (from_worker, to_worker) = worker.into_split();
    let (from_store, to_store) = store.into_split();
    let other = weather.clone();
    tokio::join!(
        pump(from_worker, to_store, Side::ToStore, born, weather),
        pump(from_store, to_worker, Side::ToWorker, born, other),
    );
}

/// Carries one direction until it ends. An end that was not asked for is passed
/// on as what it is: the end of this direction.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    side: Side,
    born: Weather,
    mut weather: watch::Receiver<Weather>,
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut changes = weather.clone();
    let carry = async {
        loop {
            let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
            let flow = weather.borrow_and_update().flow;
            match flow {
                Flow::Late(by) => tokio::time::sleep(by).await,
                _ => drop(weather.wait_for(|now| now.flow != Flow::Hold).await),
            }
            if to.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    let ended = changes.wait_for(|now| born.ended_by(now, side).is_some());
    let ending = tokio::select! {
        ended = ended => ended.ok().and_then(|now| born.ended_by(&now, side)),
        () = carry => None,
    };
    if ending == Some(Ending::Cut) {
        return;
    }
    drop(to.shutdown().await);
    if ending == Some(Ending::Closed) {
        // Half open: it is not read from either, until it is cut.
        drop(changes.wait_for(|now| now.cuts != born.cuts).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);
    const QUIET: Duration = Duration::from_millis(150);

    /// A store that says back what it hears, a proxy, and a worker's connection.
    async fn connected() -> (Proxy, TcpStream) {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let store = echo.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut one, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = one.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        let proxy = Proxy::start(store).await.unwrap();
        let mut worker = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(echoed(&mut worker).await, Some(b'a'));
        (proxy, worker)
    }

    async fn echoed(worker: &mut TcpStream) -> Option<u8> {
        worker.write_all(b"a").await.ok()?;
        heard(worker).await
    }

    /// The next byte; `None` at the end of the connection.
    async fn heard(worker: &mut TcpStream) -> Option<u8> {
        let byte = tokio::time::timeout(SOON, worker.read_u8()).await.expect("an answer in time");
        byte.ok()
    }

    async fn silent(worker: &mut TcpStream) -> bool {
        tokio::time::timeout(QUIET, worker.read_u8()).await.is_err()
    }

    #[tokio::test]
    async fn a_cut_ends_connections_and_new_ones_work() {
        let (proxy, mut worker) = connected().await;
        proxy.cut();
        assert_eq!(heard(&mut worker).await, None);
        let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(echoed(&mut again).await, Some(b'a'));
    }

    /// Nothing arrives and nothing says so; later all of it arrives.
    #[tokio::test]
    async fn a_black_hole_is_silent_and_gives_back_when_it_ends() {
        let (proxy, mut worker) = connected().await;
        proxy.set_flow(Flow::Hold);
        worker.write_all(b"b").await.unwrap();
        assert!(silent(&mut worker).await);
        let mut young = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        young.write_all(b"c").await.unwrap();
        assert!(silent(&mut young).await);
        proxy.set_flow(Flow::Pass);
        assert_eq!(heard(&mut worker).await, Some(b'b'));
        assert_eq!(heard(&mut young).await, Some(b'c'));
    }

    #[tokio::test]
    async fn a_delay_is_at_least_what_was_asked_for() {
        let (proxy, mut worker) = connected().await;
        proxy.set_flow(Flow::Late(Duration::from_millis(200)));
        let from = crate::clock::now();
        assert_eq!(echoed(&mut worker).await, Some(b'a'));
        let took = crate::clock::now() - from;
        assert!(took >= 400_000_000, "both directions are late: {took} ns");
    }

    /// The worker hears the end, while what it says is still carried.
    #[tokio::test]
    async fn a_half_closed_connection_ends_one_way_only() {
        let (proxy, mut worker) = connected().await;
        proxy.half_close(Side::ToWorker);
        assert_eq!(heard(&mut worker).await, None);
        worker.write_all(b"d").await.unwrap();
        // The other half is cut with everything.
        proxy.cut();
        let (proxy, mut worker) = connected().await;
        proxy.half_close(Side::ToStore);
        // The store hears the end, and ends its side too.
        assert_eq!(heard(&mut worker).await, None);
    }

    /// A held connection can still be cut.
    #[tokio::test]
    async fn a_cut_reaches_into_a_black_hole() {
        let (proxy, mut worker) = connected().await;
        proxy.set_flow(Flow::Hold);
        worker.write_all(b"e").await.unwrap();
        assert!(silent(&mut worker).await);
        proxy.cut();
        assert_eq!(heard(&mut worker).await, None);
    }

    /// A store that is not there looks so.
    #[tokio::test]
    async fn without_a_store_connections_are_closed() {
        let (port, _) = {
            let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
            (gone.local_addr().unwrap(), ())
        };
        let proxy = Proxy::start(port).await.unwrap();
        let mut worker = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(heard(&mut worker).await, None);
    }
}
