//! Who may do what, and who is kept out.

#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::PermissionsExt as _;

use common::{member, serve};
use serde_json::json;
use tenure_server::{Address, Bind, Error, Options, Server, ServerTls};
use tenure_testkit::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Each scope may do what it is for, and no more.
#[tokio::test]
async fn tokens_have_scopes() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{name}-token\n")).unwrap();
        path
    };
    let options = Options::new()
        .viewer_tokens(file("viewer"))
        .candidate_tokens(file("candidate"))
        .operator_tokens(file("operator"));
    let (server, stranger) = serve(options).await;
    let viewer = stranger.bearer("viewer-token");
    let candidate = stranger.bearer("candidate-token");
    let operator = stranger.bearer("operator-token");

    for path in ["/v1/elections", "/v1/members", "/metrics", "/v1/events", "/v1/nothing"] {
        let answer = stranger.get(path).await;
        answer.is_problem(401, "unauthorized");
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
    }
    stranger.bearer("viewer-token2").get("/v1/elections").await.is_problem(401, "unauthorized");
    assert_eq!(stranger.get("/livez").await.status, 200, "a probe needs no token");
    let begin = "/v1/elections/e/sessions";
    let pause = "/v1/elections/e/pause";
    for (client, may_look, may_stand, may_steer) in [
        (&viewer, true, false, false),
        (&candidate, true, true, false),
        (&operator, true, true, true),
    ] {
        assert_eq!(client.get("/v1/elections").await.status == 200, may_look);
        let body = json!({ "id": format!("by-{may_steer}") });
        assert_eq!(client.post(begin, body).await.status == 201, may_stand);
        let steered = client.post(pause, json!({})).await;
        assert_eq!(steered.status == 200, may_steer);
        if !may_steer {
            steered.is_problem(403, "forbidden");
            client.post("/v1/members/m/evict", json!({})).await.is_problem(403, "forbidden");
            client.post("/v1/elections/e/step-down", json!({})).await.is_problem(403, "forbidden");
        }
    }
    // A browser's cookie, and its end.
    stranger.post("/login", json!({"token": "no"})).await.is_problem(401, "unauthorized");
    let login = stranger.post("/login", json!({"token": "operator-token"})).await;
    let cookie = login.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("operator-token"), "the cookie is not the token");
    let browser = stranger.with("Cookie", cookie.split(';').next().unwrap());
    assert_eq!(browser.post("/v1/elections/e/resume", json!({})).await.status, 200);
    assert_eq!(browser.post("/logout", json!({})).await.status, 204);
    browser.get("/v1/elections").await.is_problem(401, "unauthorized");

    // A token that was taken out of its file is refused within a second, without a restart.
    std::fs::write(dir.path().join("operator"), "replaced\n").unwrap();
    until("the old token to be refused", async || {
        operator.get("/v1/elections").await.status == 401
    })
    .await;
    assert_eq!(stranger.bearer("replaced").get("/v1/elections").await.status, 200);
    server.stop().await.unwrap();
}

/// An address that other hosts reach is refused unless clients have to say who they are.
#[tokio::test]
async fn an_open_address_is_refused() {
    let everywhere = Bind::Tcp(([0, 0, 0, 0], 0).into());
    let refused = Server::start(member("a"), Options::new().bind(everywhere)).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Open(_)), "{error}");
    assert!(error.to_string().contains("--operator-tokens"));
    // What older sidecars answered knows no tokens.
    let compat = Options::new().stand_for("e").compat(([0, 0, 0, 0], 0).into());
    let refused = Server::start(member("a"), compat).await.unwrap_err();
    assert!(matches!(refused, Error::OpenCompat(_)), "{refused}");
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("tokens");
    std::fs::write(&empty, "# none\n").unwrap();
    let refused = Server::start(member("a"), Options::new().viewer_tokens(&empty)).await;
    assert!(refused.unwrap_err().to_string().contains("it has no token"));
}

/// A Unix socket is its user's alone; one that a dead server left is replaced, and nothing else.
#[tokio::test]
async fn a_unix_socket_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let options = || Options::new().bind(Bind::Unix(path.clone()));
    let (server, client) = serve(options()).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(client.get("/livez").await.status, 200);
    let second = Server::start(member("b"), options()).await.unwrap_err();
    assert!(second.to_string().contains("another server"), "{second}");
    server.stop().await.unwrap();
    assert!(!path.exists(), "it is removed");
    std::fs::write(&path, "precious").unwrap();
    Server::start(member("b"), options()).await.unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

/// Clients that never finish their headers, or never read, keep no other out.
#[tokio::test]
async fn slow_clients_keep_no_other_out() {
    let (server, client) = serve(Options::new()).await;
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = client.connect().await;
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(client.get("/livez").await.status, 200);
    // Headers without end are refused long before they fill the memory.
    let mut endless = client.connect().await;
    endless.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let line = format!("X-More: {}\r\n", "x".repeat(1_000));
    let mut sent = 0;
    while endless.write_all(line.as_bytes()).await.is_ok() && sent < 10_000_000 {
        sent += line.len();
    }
    let mut answer = Vec::new();
    let _ = endless.read_to_end(&mut answer).await;
    assert!(sent < 10_000_000 || answer.starts_with(b"HTTP/1.1 4"), "{sent} bytes were taken");
    drop(slow);
    server.stop().await.unwrap();
}

/// Older sidecars' clients find what they ask for.
#[tokio::test]
async fn older_sidecars_are_replaced() {
    let anywhere = ([127, 0, 0, 1], 0).into();
    let (server, _) = serve(Options::new().stand_for("nightly").compat(anywhere)).await;
    let client = common::Client::at(server.compat_address().unwrap());
    until("the leader's name", async || client.raw("GET", "/").await.json()["name"] == "server")
        .await;
    let mut events = client.events("/sse", None).await;
    assert_eq!(events.next().await.unwrap().data["name"], "server");
    // A page whose name was rebound to this address learns nothing.
    let rebound = client.with("Host", "evil.example:4040");
    for path in ["/", "/sse"] {
        let refused = rebound.raw("GET", path).await;
        refused.is_problem(421, "other_host");
        assert!(refused.header("content-security-policy").is_some());
    }
    server.stop().await.unwrap();
}

/// HTTPS, for clients with a certificate of our authority alone; a browser's cookie is then one
/// for HTTPS.
#[tokio::test]
async fn https_is_for_clients_with_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let authority = tenure_testkit::Authority::new();
    let (certificate, key) = authority.sign("DNS:localhost", dir.path());
    let tokens = dir.path().join("operators");
    std::fs::write(&tokens, "steer\n").unwrap();
    let tls = ServerTls { certificate, key, client_ca: Some(authority.root()) };
    let (server, _) = serve(Options::new().tls(tls).operator_tokens(tokens)).await;
    let Address::Tcp { at, tls: true } = server.addresses()[0] else { panic!("it is HTTPS") };
    let ask = async |identity: Option<&str>, by: &tenure_testkit::Authority| {
        let body = "{\"token\":\"steer\"}";
        let request = format!(
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        std::fs::write(dir.path().join("request"), request).unwrap();
        let mut client = std::process::Command::new("openssl");
        client.args(["s_client", "-quiet", "-verify_return_error", "-servername", "localhost"]);
        client.args(["-connect", &at.to_string(), "-CAfile"]).arg(authority.root());
        if let Some(name) = identity {
            let (certificate, key) = by.identity(name);
            client.arg("-cert").arg(certificate).arg("-key").arg(key);
        }
        client.stdin(std::fs::File::open(dir.path().join("request")).unwrap());
        let said = tokio::task::spawn_blocking(move || client.output());
        let said = tenure_testkit::within(said).await.unwrap().unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    };
    assert!(!ask(None, &authority).await.contains("HTTP/1.1"), "it has no certificate");
    let stranger = tenure_testkit::Authority::new();
    assert!(!ask(Some("a"), &stranger).await.contains("HTTP/1.1"), "it is another authority's");
    let said = ask(Some("a"), &authority).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert!(said.contains("HttpOnly; Secure; SameSite=Strict"), "{said}");
    server.stop().await.unwrap();
}
