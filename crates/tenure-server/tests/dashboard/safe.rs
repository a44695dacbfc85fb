//! What strangers write is text, and what other pages ask for is refused.

use serde_json::json;
use tenure_server::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{World, lead};

const HOSTILE: [&str; 8] = [
    "<script>window.hurt = 1</script>",
    "\"><img src=x onerror=window.hurt=1>",
    "' onmouseover='window.hurt=1",
    "gpj.\u{202e}exe",
    "javascript:window.hurt=1",
    "../../v1/elections",
    "a/b?c=d&e#f%2e%2e",
    "</template></table><h1>mine</h1>",
];

/// Names, reasons and metadata with markup, quotes and turned text are shown as they are, and
/// nothing of them is carried out; each page of each election is reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_are_inert() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    let operator = world.server.member().operator().clone();
    let builder = world.server.member().member_in("default").id(HOSTILE[1]);
    let member = builder.metadata(HOSTILE[0]).endpoint("x\"><b>:1").connect().await.unwrap();
    let mut led = Vec::new();
    for name in HOSTILE {
        led.push(lead(&member, name).await);
        operator.election(name).pause(HOSTILE[0]).await.unwrap();
    }
    let bound = tenure::naming::Name::new(HOSTILE[7]).unwrap();
    let value = tenure::naming::Value::at("10.0.0.7:9000").unwrap();
    let _name = member.names().take(bound, value).await.unwrap();

    world.open("/").await;
    let rows = "return [...document.querySelectorAll('tbody tr[data-state]')].length === 8";
    browser.until("all rows", rows).await;
    let shown = browser.text("#elections").await;
    for name in HOSTILE {
        let written = tenure::views::shown(name);
        assert!(shown.contains(&*written), "{written:?} is not in {shown}");
    }
    assert!(!shown.contains('\u{202e}'));
    for name in HOSTILE {
        // By its own link, as a person does.
        world.open("/").await;
        browser.until("all rows", rows).await;
        let script = "const link = [...document.querySelectorAll('tbody a')] \
                      .find((link) => link.textContent === arguments[0]); link.click(); return 1;";
        browser.run_with(script, &tenure::views::shown(name)).await;
        browser.until("its page", "return document.querySelector('#head') !== null").await;
        world.live().await;
        assert_eq!(browser.text("h1").await, tenure::views::shown(name), "{name:?}");
        assert_eq!(browser.text("#leader .big").await, HOSTILE[1]);
    }
    for path in ["/members", "/names", "/journal", "/journal?election=%3Cscript%3E"] {
        world.open(path).await;
        assert!(!browser.text("main").await.contains('\u{202e}'), "{path}");
    }
    let hurt = "return window.hurt || document.querySelectorAll('main img, main h1 + h1, main b b').length";
    assert_eq!(browser.run(hurt).await, json!(0));
    world.nothing_to_complain_of().await;
    world.server.stop().await.unwrap();
}

/// A page of another origin, and one whose name was rebound to the server's address, can neither
/// read nor act.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_pages_neither_read_nor_act() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    let member = world.member("web-1").await;
    let _leadership = lead(&member, "secret-election").await;

    let elsewhere = other_page().await;
    browser.go(&elsewhere).await;
    let tried = browser
        .run_with(
            "const at = arguments[0]; const said = []; \
             const post = (headers, mode) => fetch(at + '/v1/elections/secret-election/pause', \
               { method: 'POST', body: '{}', headers, mode }).then((answer) => 'got ' + answer.type, () => 'refused'); \
             said.push(await fetch(at + '/v1/elections').then((answer) => answer.text(), () => 'refused')); \
             said.push(await post({ 'content-type': 'application/json' }, 'cors')); \
             said.push(await post({ 'content-type': 'text/plain' }, 'no-cors')); \
             const frame = document.createElement('iframe'); frame.src = at + '/'; \
             document.body.append(frame); await new Promise((done) => (frame.onload = done)); \
             let inside; try { inside = frame.contentWindow.document.body.innerText; } catch { inside = 'refused'; } \
             said.push(inside); \
             return said;",
            &world.at,
        )
        .await;
    assert_eq!(tried, json!(["refused", "refused", "got opaque", "refused"]));

    let rebound = world.at.replace("127.0.0.1", "rebound.example");
    for path in ["/", "/v1/elections", "/election?name=secret-election"] {
        browser.go(&format!("{rebound}{path}")).await;
        let shown = browser.text("body").await;
        assert!(shown.contains("does not go by the name"), "{path}: {shown}");
        assert!(!shown.contains("web-1"), "{path}: {shown}");
    }
    let tried = browser
        .run(
            "const answer = await fetch('/v1/elections/secret-election/pause', { method: 'POST', \
             body: '{}', headers: { 'content-type': 'application/json' } }); return answer.status;",
        )
        .await;
    assert_eq!(tried, json!(421));
    let now = world.client.get("/v1/elections/secret-election?fresh=1").await.json();
    assert_eq!(now["paused"], json!(null), "nothing was done");
    world.server.stop().await.unwrap();
}

/// A page of another origin: an empty one.
async fn other_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\
                        Connection: close\r\n\r\n<!doctype html>";
            let _ = stream.write_all(page.as_bytes()).await;
        }
    });
    format!("http://{at}/")
}
