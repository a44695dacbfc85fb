//! A TCP proxy between clients and a server that can cut, delay, hold and half-close all
//! of its connections, and leave out some of what the server says.
//!
//! It has a thread and a runtime of its own: tests without a runtime use it too, and a
//! test that blocks its runtime does not hold up the line. It ends when it is dropped.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What data meets on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// It passes.
    #[default]
    Pass,
    /// It passes late.
    Late(Duration),
    /// It waits until something else holds. Nothing is lost.
    Hold,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// Given what came from the server on one connection, in pieces of any size: what is
/// passed on to the client.
pub type Sieve = Box<dyn FnMut(&[u8]) -> Vec<u8> + Send>;

/// Makes the sieve of a new connection.
type NewSieve = Arc<dyn Fn() -> Sieve + Send + Sync>;

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

/// A proxy, for as long as it is not dropped.
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Listens on a free port and connects to `server` for each connection.
    ///
    /// # Errors
    ///
    /// If there is no free port, no thread, or no such server in the name service.
    pub fn start(server: impl ToSocketAddrs) -> io::Result<Self> {
        Self::sifting(server, || Box::new(<[u8]>::to_vec))
    }

    /// The same; what the server says on a connection goes through a sieve of its own.
    ///
    /// # Errors
    ///
    /// Those of [`Proxy::start`].
    pub fn sifting(
        server: impl ToSocketAddrs,
        sieve: impl Fn() -> Sieve + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let server = server.to_socket_addrs()?.next();
        let server = server.ok_or_else(|| io::Error::other("the server has no address"))?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (weather, mut seen) = watch::channel(Weather::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let run = move || {
            runtime.block_on(async {
                let to = Upstream { server, sieve: Arc::new(sieve), weather: seen.clone() };
                tokio::spawn(accept(listener, to));
                // Until the proxy is dropped. Its connections end with the runtime.
                while seen.changed().await.is_ok() {}
            });
        };
        std::thread::Builder::new().name("proxy".into()).spawn(run)?;
        Ok(Self { address, weather })
    }

    /// In front of the server that `url` names after an `@`; gives the URL that goes
    /// through the proxy.
    ///
    /// # Panics
    ///
    /// If the URL has another form, or the proxy cannot be started.
    #[must_use]
    pub fn before(url: &str) -> (Self, String) {
        let (head, rest) = url.split_once('@').expect("the URL names a user and a host");
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (server, tail) = rest.split_at(end);
        let proxy = Self::start(server).expect("a proxy");
        let through = format!("{head}@{}{tail}", proxy.address);
        (proxy, through)
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of that address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What all data meets from now on.
    pub fn set_flow(&self, flow: Flow) {
        self.weather.send_modify(|weather| weather.flow = flow);
    }

    /// Ends all connections there are.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }

    /// Closes one direction of all connections there are.
    pub fn half_close(&self, side: Side) {
        self.weather.send_modify(|weather| weather.closed[side as usize] += 1);
    }
}

/// What a connection goes to, and through.
#[derive(Clone)]
struct Upstream {
    server: SocketAddr,
    sieve: NewSieve,
    weather: watch::Receiver<Weather>,
}

async fn accept(listener: TcpListener, to: Upstream) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => drop(tokio::spawn(carry(client, to.clone()))),
            // Out of descriptors for a moment; the listener is as good as before.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Both directions of one connection. A server that is not there refuses through the
/// proxy: the client's connection is closed.
async fn carry(client: TcpStream, to: Upstream) {
    let mut weather = to.weather;
    let born = *weather.borrow();
    // A connection that begins while data is held waits, too.
    let Ok(_) = weather.wait_for(|now| now.flow != Flow::Hold).await.map(drop) else { return };
    let Ok(server) = TcpStream::connect(to.server).await else { return };
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let other = weather.clone();
    let whole: Sieve = Box::new(<[u8]>::to_vec);
    tokio::join!(
        pump(from_client, to_server, whole, Side::ToServer, born, weather),
        pump(from_server, to_client, (to.sieve)(), Side::ToClient, born, other),
    );
}

/// Carries one direction until it ends. An end that was not asked for is passed
/// on as what it is: the end of this direction.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut sieve: Sieve,
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
            if to.write_all(&sieve(&buffer[..length])).await.is_err() {
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

    /// A server that says back what it hears, a proxy, and a client's connection.
    async fn connected() -> (Proxy, TcpStream) {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = echo.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut one, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = one.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        let proxy = Proxy::start(server).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(echoed(&mut client).await, Some(b'a'));
        (proxy, client)
    }

    async fn echoed(client: &mut TcpStream) -> Option<u8> {
        client.write_all(b"a").await.ok()?;
        heard(client).await
    }

    /// The next byte; `None` at the end of the connection.
    async fn heard(client: &mut TcpStream) -> Option<u8> {
        let byte = tokio::time::timeout(SOON, client.read_u8()).await.expect("an answer in time");
        byte.ok()
    }

    async fn silent(client: &mut TcpStream) -> bool {
        tokio::time::timeout(QUIET, client.read_u8()).await.is_err()
    }

    #[tokio::test]
    async fn a_cut_ends_connections_and_new_ones_work() {
        let (proxy, mut client) = connected().await;
        proxy.cut();
        assert_eq!(heard(&mut client).await, None);
        let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(echoed(&mut again).await, Some(b'a'));
    }

    /// Nothing arrives and nothing says so; later all of it arrives.
    #[tokio::test]
    async fn held_data_is_silent_and_arrives_when_it_passes_again() {
        let (proxy, mut client) = connected().await;
        proxy.set_flow(Flow::Hold);
        client.write_all(b"b").await.unwrap();
        assert!(silent(&mut client).await);
        let mut young = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        young.write_all(b"c").await.unwrap();
        assert!(silent(&mut young).await);
        proxy.set_flow(Flow::Pass);
        assert_eq!(heard(&mut client).await, Some(b'b'));
        assert_eq!(heard(&mut young).await, Some(b'c'));
    }

    #[tokio::test]
    async fn a_delay_is_at_least_what_was_asked_for() {
        let (proxy, mut client) = connected().await;
        proxy.set_flow(Flow::Late(Duration::from_millis(200)));
        let from = crate::stamp();
        assert_eq!(echoed(&mut client).await, Some(b'a'));
        let took = crate::stamp() - from;
        assert!(took >= 400_000_000, "both directions are late: {took} ns");
    }

    /// The client hears the end, while what it says is still carried.
    #[tokio::test]
    async fn a_half_closed_connection_ends_one_way_only() {
        let (proxy, mut client) = connected().await;
        proxy.half_close(Side::ToClient);
        assert_eq!(heard(&mut client).await, None);
        client.write_all(b"d").await.unwrap();
        // The other half is cut with everything.
        proxy.cut();
        let (proxy, mut client) = connected().await;
        proxy.half_close(Side::ToServer);
        // The server hears the end, and ends its side too.
        assert_eq!(heard(&mut client).await, None);
    }

    /// A held connection can still be cut.
    #[tokio::test]
    async fn a_cut_reaches_what_is_held() {
        let (proxy, mut client) = connected().await;
        proxy.set_flow(Flow::Hold);
        client.write_all(b"e").await.unwrap();
        assert!(silent(&mut client).await);
        proxy.cut();
        assert_eq!(heard(&mut client).await, None);
    }

    /// A server that is not there looks so.
    #[tokio::test]
    async fn without_a_server_connections_are_closed() {
        let gone = ("127.0.0.1", crate::free_port());
        let proxy = Proxy::start(gone).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(heard(&mut client).await, None);
    }

    /// Only what the sieve leaves of the server's words arrives, on each connection alone.
    #[tokio::test]
    async fn a_sieve_leaves_out_what_it_will() {
        let (plain, _) = connected().await;
        let sieve = || -> Sieve {
            Box::new(|bytes| bytes.iter().copied().filter(|b| *b != b'x').collect())
        };
        let proxy = Proxy::sifting(plain.address(), sieve).unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        client.write_all(b"xyx").await.unwrap();
        assert_eq!(heard(&mut client).await, Some(b'y'));
        assert!(silent(&mut client).await);
    }

    /// The line ends with the proxy; nothing is left that listens.
    #[tokio::test]
    async fn a_dropped_proxy_listens_no_more() {
        let (proxy, mut client) = connected().await;
        let address = proxy.address();
        drop(proxy);
        assert_eq!(heard(&mut client).await, None);
        crate::until("the listener to be gone", || async {
            TcpStream::connect(address).await.is_err()
        })
        .await;
    }
}
