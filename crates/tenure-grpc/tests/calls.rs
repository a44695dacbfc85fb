//! Calls by way of real servers on real sockets, on a store in memory.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Client, Service, listen, member, serve};
use futures_util::{StreamExt, stream};
use tenure::Tenure;
use tenure_grpc::{LeaderChannel, LeaderOnly, VACANT};
use tenure_testkit::{LIMIT, fresh_name, until, within};
use tokio::io::AsyncWriteExt;
use tonic::{Code, Request};

fn store() -> String {
    format!("memory:{}", fresh_name("grpc"))
}

async fn client(store: &str) -> Client {
    let tenure = Tenure::connect(store).await.unwrap();
    Client::new(LeaderChannel::builder(tenure.election("texts")).build().unwrap())
}

/// A call finds the leader, follows it to the next one, and waits through the vacancy between.
#[tokio::test]
async fn calls_follow_the_leader() {
    let store = store();
    let service = Service::default();
    let first = member(&store, "a", &service).await;
    let second = member(&store, "b", &service).await;
    let mut client = client(&store).await;
    let early = tokio::spawn({
        let mut client = client.clone();
        async move { client.say("early").await }
    });
    // Calls that are given up while they wait, and a clone that is ready and never called, keep
    // nothing from the others.
    let given_up: Vec<_> = (0..50)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.say("given up").await })
        })
        .collect();
    let mut idle = client.clone();
    idle.0.ready().await.unwrap();
    tokio::task::yield_now().await;
    given_up.iter().for_each(tokio::task::JoinHandle::abort);
    let leadership = first.election.campaign().await.unwrap();
    assert_eq!(within(early).await.unwrap().unwrap(), "early under 1");
    assert_eq!(client.say("one").await.unwrap(), "one under 1");
    let standing =
        tokio::spawn(async move { second.election.campaign().await.map(|l| (l, second)) });
    leadership.resign().await.unwrap();
    assert_eq!(client.say("two").await.unwrap(), "two under 2");
    drop(standing.await.unwrap().unwrap());
    let ids: Vec<_> = service.handled.lock().unwrap().clone();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

/// A vacancy ends a wait in time: by the channel's limit, by the call's deadline, at once where
/// the leader's config says so.
#[tokio::test]
async fn a_vacancy_is_waited_for_no_longer_than_allowed() {
    let store = store();
    let tenure = Tenure::connect(&store).await.unwrap();
    let limit = Duration::from_millis(300);
    let channel = LeaderChannel::builder(tenure.election("texts")).wait_for_leader(limit);
    let mut client = Client::new(channel.build().unwrap());
    let began = Instant::now();
    let status = client.say("x").await.unwrap_err();
    assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.metadata().get(VACANT).unwrap(), "1");
    assert!(status.message().contains("was not handled"), "{status:?}");
    // The deadline is shorter than the vacancy.
    let channel = LeaderChannel::builder(tenure.election("texts")).wait_for_leader(LIMIT);
    let mut client = Client::new(channel.build().unwrap());
    let mut request = Request::new("x".to_owned());
    request.set_timeout(Duration::from_millis(50));
    let status = within(client.unary_with("Say", request)).await.unwrap_err();
    assert_eq!((status.code(), status.metadata().get(VACANT).is_some()), (Code::Unavailable, true));
}

/// What a handler answers is passed on as it is, and never repeated, even if it looks like a
/// refusal.
#[tokio::test]
async fn a_handlers_own_failure_is_not_repeated() {
    let store = store();
    let service = Service::default();
    let one = member(&store, "a", &service).await;
    let _leadership = one.election.campaign().await.unwrap();
    let mut client = client(&store).await;
    for text in ["fail", "forward"] {
        let status = within(client.say(text)).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.metadata().get(tenure_grpc::REFUSED).is_none());
        assert_eq!(status.metadata().get(tenure_grpc::TERM).unwrap(), "1");
    }
    assert_eq!(service.handled.lock().unwrap().len(), 2);
}

/// A leader that cannot be called says why, at once; the next leader can be.
#[tokio::test]
async fn a_leader_without_a_usable_endpoint_is_a_clear_status() {
    for (endpoint, says) in [(None, "publishes no endpoint"), (Some("nowhere"), "is no address")] {
        let store = store();
        let mut builder = Tenure::builder(&store);
        if let Some(endpoint) = endpoint {
            builder = builder.endpoint(endpoint);
        }
        let tenure = builder.connect().await.unwrap();
        let leadership = tenure.election("texts").campaign().await.unwrap();
        let mut client = client(&store).await;
        let began = Instant::now();
        let status = within(client.say("x")).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().contains(says), "{status:?}");
        assert!(began.elapsed() < Duration::from_secs(4), "it waits for nothing");
        leadership.resign().await.unwrap();
        let service = Service::default();
        let good = member(&store, "good", &service).await;
        let _leadership = good.election.campaign().await.unwrap();
        assert_eq!(within(client.say("x")).await.unwrap(), "x under 2");
    }
}

/// Of three endpoints the first refuses connections and the second swallows them: no call
/// fails.
#[tokio::test]
async fn a_dead_endpoint_costs_no_call() {
    let store = store();
    let service = Service::default();
    let dead = tenure_testkit::free_port();
    let listener = listen("127.0.0.1").await;
    let alive = listener.local_addr().unwrap().to_string();
    let tenure = Tenure::builder(&store)
        .endpoint(format!("127.0.0.1:{dead}"))
        .endpoint("[100::1]:9")
        .endpoint(alive)
        .connect()
        .await
        .unwrap();
    let _server = serve(listener, tenure.election("texts"), service.clone());
    let _leadership = tenure.election("texts").campaign().await.unwrap();
    let client = client(&store).await;
    let calls = (0..200).map(|n| {
        let mut client = client.clone();
        async move { client.say(&n.to_string()).await }
    });
    let answers: Vec<_> = within(stream::iter(calls).buffer_unordered(8).collect()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(service.handled.lock().unwrap().len(), 200);
}

/// A stream goes on under its term, ends with a clear status when the term is handed over, and
/// the next one is answered by the successor. Nothing of it is sent twice.
#[tokio::test]
async fn a_stream_ends_with_its_term_and_is_not_repeated() {
    let store = store();
    let service = Service::default();
    let first = member(&store, "a", &service).await;
    let second = member(&store, "b", &service).await;
    let leadership = first.election.campaign().await.unwrap();
    let mut client = client(&store).await;
    let (say, said) = tokio::sync::mpsc::unbounded_channel::<String>();
    let messages = stream::unfold(said, |mut said| async { Some((said.recv().await?, said)) });
    let mut answers = client.chat(messages).await.unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap(), "open under 1");
    say.send("one".into()).unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap(), "one under 1");
    let standing =
        tokio::spawn(async move { second.election.campaign().await.map(|l| (l, second)) });
    let began = Instant::now();
    first.election.ask_to_step_down("test").await.unwrap();
    leadership.stopping().await;
    let status = within(answers.message()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(status.metadata().get(tenure_grpc::ENDED).unwrap(), "1");
    leadership.resign().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "it did not hold up the hand-over");
    let mut again = client.chat(stream::iter(["two".to_owned()])).await.unwrap();
    assert_eq!(again.message().await.unwrap().unwrap(), "open under 2");
    assert_eq!(again.message().await.unwrap().unwrap(), "two under 2");
    drop(standing.await.unwrap().unwrap());
    let handled = service.handled.lock().unwrap().clone();
    assert_eq!(handled, [("one".to_owned(), 1), ("two".to_owned(), 2)]);
}

/// A handler keeps its term: the successor is elected when it has ended, and the calls of the
/// meantime wait.
#[tokio::test]
async fn a_hand_over_waits_for_the_handlers() {
    let store = store();
    let service = Service::default();
    let first = member(&store, "a", &service).await;
    let second = member(&store, "b", &service).await;
    let leadership = first.election.campaign().await.unwrap();
    let client = client(&store).await;
    let slow = tokio::spawn({
        let mut client = client.clone();
        async move { client.unary("Slow", "slow").await }
    });
    let handled = service.handled.clone();
    until("the slow call is handled", async || !handled.lock().unwrap().is_empty()).await;
    let standing =
        tokio::spawn(async move { second.election.campaign().await.map(|l| (l, second)) });
    let resigned = tokio::spawn(leadership.resign());
    let mut other = client.clone();
    assert_eq!(within(other.say("next")).await.unwrap(), "next under 2");
    assert_eq!(slow.await.unwrap().unwrap(), "slow under 1");
    resigned.await.unwrap().unwrap();
    drop(standing.await.unwrap().unwrap());
}

/// A handler whose term is lost is cancelled, and the answer says that it may have run.
#[tokio::test]
async fn a_handler_is_cancelled_with_its_term() {
    let store = store();
    let service = Service::default();
    let one = member(&store, "a", &service).await;
    let _leadership = one.election.campaign().await.unwrap();
    let client = client(&store).await;
    let slow = tokio::spawn({
        let mut client = client.clone();
        async move { client.unary("Slow", "slow").await }
    });
    let handled = service.handled.clone();
    until("the slow call is handled", async || !handled.lock().unwrap().is_empty()).await;
    one.tenure.operator().evict_now(one.tenure.id()).await.unwrap();
    let status = within(slow).await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{status:?}");
    assert_eq!(handled.lock().unwrap().len(), 1, "it is not repeated");
}

/// A request that names a newer term is refused by one that leads an older.
#[tokio::test]
async fn a_request_of_a_newer_term_is_refused() {
    let store = store();
    let service = Service::default();
    let one = member(&store, "a", &service).await;
    let _leadership = one.election.campaign().await.unwrap();
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", one.server.address));
    let mut plain = tonic::client::Grpc::new(channel.unwrap().connect().await.unwrap());
    for (term, refused) in [("1", false), ("2", true), ("18446744073709551615", true), ("x", false)]
    {
        plain.ready().await.unwrap();
        let mut request = Request::new("x".to_owned());
        request.metadata_mut().insert(tenure_grpc::TERM, term.parse().unwrap());
        let path = "/test.Texts/Say".parse().unwrap();
        let answer = plain.unary(request, path, common::Texts).await;
        let says = |status: &tonic::Status| status.metadata().contains_key(tenure_grpc::REFUSED);
        assert_eq!(answer.as_ref().is_err_and(says), refused, "{term}: {answer:?}");
    }
    // A forged number costs the leader's own clients nothing.
    assert_eq!(client(&store).await.say("y").await.unwrap(), "y under 1");
}

/// G2: a server that says GOAWAY below a request's stream, or refuses it, did not handle it; one
/// that closes the connection may have.
#[tokio::test]
async fn only_what_provably_did_not_run_is_repeated() {
    for (frames, repeats) in [
        // GOAWAY, last stream 0, NO_ERROR.
        (&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], true),
        // RST_STREAM of stream 1: REFUSED_STREAM.
        (&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7][..], true),
        // RST_STREAM of stream 1: INTERNAL_ERROR.
        (&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2][..], false),
        // GOAWAY, last stream 1: it may be handled; then the end.
        (&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0][..], false),
        (&[][..], false),
    ] {
        let store = store();
        let listener = listen("127.0.0.1").await;
        let endpoint = listener.local_addr().unwrap().to_string();
        let tenure = Tenure::builder(&store).endpoint(endpoint).connect().await.unwrap();
        let service = Service::default();
        let election = tenure.election("texts");
        let _leadership = election.campaign().await.unwrap();
        let mut client = client(&store).await;
        let call = tokio::spawn(async move { client.say("x").await });
        let (mut line, _) = listener.accept().await.unwrap();
        line.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap(); // SETTINGS
        read_until_a_request(&mut line).await;
        line.write_all(frames).await.unwrap();
        if frames.get(3) == Some(&3) && repeats {
            // The connection stands, and the call comes again on it: GOAWAY below that stream.
            read_frames_until_a_request(&mut line).await;
            line.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]).await.unwrap();
        } else if !repeats {
            line.shutdown().await.unwrap();
        }
        let _server = serve(listener, election, service.clone());
        let answer = within(call).await.unwrap();
        assert_eq!(answer.is_ok(), repeats, "{frames:?}: {answer:?}");
        if let Err(status) = answer {
            assert!(status.message().contains("may have been handled"), "{status:?}");
            assert!(service.handled.lock().unwrap().is_empty());
        }
    }
}

/// Reads frames of HTTP/2 until the headers of a request and the end of its body were there.
async fn read_until_a_request(line: &mut tokio::net::TcpStream) {
    use tokio::io::AsyncReadExt;
    line.read_exact(&mut [0; 24]).await.unwrap();
    read_frames_until_a_request(line).await;
}

async fn read_frames_until_a_request(line: &mut tokio::net::TcpStream) {
    use tokio::io::AsyncReadExt;
    loop {
        let mut head = [0; 9];
        line.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        line.read_exact(&mut vec![0; length]).await.unwrap();
        let ends = head[4] & 1 == 1 && head[3] <= 1;
        if ends {
            return;
        }
    }
}

/// A channel whose settings have TLS never speaks without: neither by what a leader publishes.
#[tokio::test]
async fn tls_is_not_given_up() {
    let authority = tenure_testkit::Authority::new();
    let place = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign("DNS:localhost,IP:127.0.0.1,IP:::1", place.path());
    let read = |path: std::path::PathBuf| std::fs::read(path).unwrap();
    let identity = tonic::transport::Identity::from_pem(read(certificate), read(key));
    let root = tonic::transport::Certificate::from_pem(read(authority.root()));
    let tls = tonic::transport::ClientTlsConfig::new().ca_certificate(root);
    let service = Service::default();
    for (host, scheme, works) in
        [("127.0.0.1", "", true), ("::1", "", true), ("127.0.0.1", "http://", false)]
    {
        let store = store();
        let listener = listen(host).await;
        let endpoint = format!("{scheme}{}", listener.local_addr().unwrap());
        let tenure = Tenure::builder(&store).endpoint(endpoint).connect().await.unwrap();
        let only = LeaderOnly::new(tenure.election("texts"));
        let served = tonic::transport::ServerTlsConfig::new().identity(identity.clone());
        let _server = common::serve_with(listener, only, service.clone(), Some(served));
        let _leadership = tenure.election("texts").campaign().await.unwrap();
        let tls = tls.clone();
        let channel = LeaderChannel::builder(tenure.election("texts"))
            .endpoint(move |endpoint| endpoint.tls_config(tls.clone()));
        let mut client = Client::new(channel.build().unwrap());
        let answer = within(client.say("x")).await;
        assert_eq!(answer.is_ok(), works, "{answer:?}");
        if let Err(status) = answer {
            assert!(status.message().contains("does not give up"), "{status:?}");
        }
    }
}

/// A leader's config sets timeouts; one that is no JSON costs nothing.
#[tokio::test]
async fn a_leaders_service_config_is_honoured() {
    let short =
        br#"{"grpc.service_config": {"methodConfig": [{"name": [{}], "timeout": "0.05s"}]}}"#;
    let broken = br#"{"grpc.service_config": "{\"methodConfig\": "}"#;
    for (metadata, works) in [(&short[..], false), (&broken[..], true)] {
        let store = store();
        let listener = listen("::1").await;
        let endpoint = listener.local_addr().unwrap().to_string();
        let builder = Tenure::builder(&store).endpoint(endpoint).metadata(metadata);
        let tenure = builder.connect().await.unwrap();
        let _server = serve(listener, tenure.election("texts"), Service::default());
        let _leadership = tenure.election("texts").campaign().await.unwrap();
        let mut client = client(&store).await;
        drop(client.say("the config is known").await);
        let answer = within(client.unary("Slow", "x")).await;
        assert_eq!(answer.is_ok(), works, "{answer:?}");
        if let Err(status) = answer {
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        }
    }
}

/// G4: while the store is away the route stands for the leader's ttl, and then it is vacant.
#[tokio::test]
async fn the_route_ends_with_the_ttl_while_the_store_is_away() {
    use tenure::testing::FaultyStore;

    let store = tenure_store::MemoryStore::new().shared();
    let faulty = FaultyStore::new(store.clone());
    let service = Service::default();
    let listener = listen("127.0.0.1").await;
    let endpoint = listener.local_addr().unwrap().to_string();
    let ttl = Duration::from_secs(2);
    let leader = Tenure::with_store(store).ttl(ttl).endpoint(endpoint).connect().await.unwrap();
    // It would answer all along: what ends the route is the channel's own count.
    let _server = serve(listener, leader.election("texts"), service);
    let _leadership = leader.election("texts").campaign().await.unwrap();
    let observing = Tenure::with_store(faulty.shared()).connect().await.unwrap();
    let channel = LeaderChannel::builder(observing.election("texts"))
        .wait_for_leader(Duration::from_millis(20));
    let mut client = Client::new(channel.build().unwrap());
    until("it is called", async || client.say("x").await.is_ok()).await;
    faulty.outage(true);
    let began = Instant::now();
    assert!(client.say("y").await.is_ok(), "the route stands");
    until("it is vacant", async || {
        client.say("z").await.is_err_and(|s| s.metadata().contains_key(VACANT))
    })
    .await;
    assert!(began.elapsed() <= ttl + Duration::from_secs(2), "{:?}", began.elapsed());
    faulty.outage(false);
    until("it is called again", async || client.say("x").await.is_ok()).await;
}

/// A server that refuses each call and hints at `to`, with a number that rises. How often it was
/// asked.
fn hinting(to: String, number: Arc<AtomicU64>) -> (Arc<AtomicU64>, axum::Router) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let answer = move || {
        count.fetch_add(1, Ordering::SeqCst);
        let term = number.fetch_add(1, Ordering::SeqCst);
        let mut status = tonic::Status::failed_precondition("look there");
        let metadata = status.metadata_mut();
        metadata.insert(tenure_grpc::REFUSED, "1".parse().unwrap());
        metadata.insert(tenure_grpc::TERM, term.to_string().parse().unwrap());
        metadata.insert(tenure_grpc::ENDPOINT, to.parse().unwrap());
        status.into_http::<axum::body::Body>()
    };
    let router = axum::Router::new().fallback(move || {
        let answer = answer();
        async move { answer }
    });
    (asked, router)
}

fn serve_router(listener: tokio::net::TcpListener, router: axum::Router) {
    let routes = tonic::service::Routes::from(router);
    let server = tonic::transport::Server::builder().add_routes(routes);
    tokio::spawn(server.serve_with_incoming(common::incoming(listener)));
}

/// A forged hint, at an address that no member has published, is connected to by no call.
#[tokio::test]
async fn a_forged_hint_is_not_followed() {
    let store = store();
    let listener = listen("127.0.0.1").await;
    let endpoint = listener.local_addr().unwrap().to_string();
    let elsewhere = listen("127.0.0.1").await;
    let number = Arc::new(AtomicU64::new(u64::MAX / 2));
    let (_, router) = hinting(elsewhere.local_addr().unwrap().to_string(), number);
    serve_router(listener, router);
    let tenure = Tenure::builder(&store).endpoint(endpoint).connect().await.unwrap();
    let leadership = tenure.election("texts").campaign().await.unwrap();
    let channel = LeaderChannel::builder(tenure.election("texts"));
    let limit = Duration::from_millis(200);
    let mut client = Client::new(channel.wait_for_leader(limit).build().unwrap());
    let status = within(client.say("x")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let reached = tokio::time::timeout(Duration::from_millis(1), elsewhere.accept()).await;
    assert!(reached.is_err(), "{reached:?}");
    // Its number made no true leader look old.
    leadership.resign().await.unwrap();
    let service = Service::default();
    let good = member(&store, "good", &service).await;
    let _leadership = good.election.campaign().await.unwrap();
    assert_eq!(within(client.say("y")).await.unwrap(), "y under 2");
}

/// Two servers that hint at each other cost a call three redirects, and it ends in time.
#[tokio::test]
async fn servers_that_hint_at_each_other_end_in_time() {
    let store = store();
    let one = listen("127.0.0.1").await;
    let two = listen("127.0.0.1").await;
    let ends = [&one, &two].map(|listener| listener.local_addr().unwrap().to_string());
    let a = Tenure::builder(&store).id("a").endpoint(&ends[0]).connect().await.unwrap();
    let b = Tenure::builder(&store).id("b").endpoint(&ends[1]).connect().await.unwrap();
    b.join().unwrap();
    let _leadership = a.election("texts").campaign().await.unwrap();
    let number = Arc::new(AtomicU64::new(100));
    let mut asked = Vec::new();
    for (listener, to) in [(one, &ends[1]), (two, &ends[0])] {
        let (count, router) = hinting(to.clone(), number.clone());
        asked.push(count);
        serve_router(listener, router);
    }
    let tenure = Tenure::connect(&store).await.unwrap();
    let channel = LeaderChannel::builder(tenure.election("texts"))
        .wait_for_leader(Duration::from_millis(700));
    let mut client = Client::new(channel.build().unwrap());
    let status = within(client.say("x")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.message().contains("was not handled"), "{status:?}");
    let [a, b] = [&asked[0], &asked[1]].map(|count| count.load(Ordering::SeqCst));
    assert!(a > 0 && b <= 3 && a < 60, "{a} and {b}");
}
