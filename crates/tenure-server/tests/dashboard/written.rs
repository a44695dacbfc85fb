//! The pages as the server writes them, without a browser.

use tenure_server::Options;
use tenure_testkit::until;

use crate::common::{Answer, Client, serve};
use crate::lead;

async fn page(client: &Client, path: &str) -> Answer {
    client.with("Accept", "text/html").raw("GET", path).await
}

/// Elections without a leader stand first; the filter and the counts are the server's, too.
#[tokio::test]
async fn the_list_is_filtered_without_a_script() {
    let (server, client) = serve(Options::new()).await;
    let member = server.member();
    let _led = lead(member, "alpha").await;
    lead(member, "beta").await.resign().await.unwrap();
    member.operator().election("gamma").pause("because").await.unwrap();
    until("all to be listed", async || page(&client, "/").await.body.contains("gamma")).await;
    let all = page(&client, "/").await.body;
    let place =
        |name: &str| all.find(&format!("?name={name}\"")).unwrap_or_else(|| panic!("{all}"));
    assert!(place("beta") < place("alpha"), "the vacant one is first");
    let vacant = page(&client, "/?show=vacant").await.body;
    assert!(vacant.contains("?name=beta") && !vacant.contains("?name=alpha"));
    let filtered = page(&client, "/?q=ALPH").await.body;
    assert!(filtered.contains("?name=alpha") && !filtered.contains("?name=beta"));
    assert!(page(&client, "/?q=server").await.body.contains("?name=alpha"), "by the leader's id");
    assert!(page(&client, "/?q=none&show=odd&from=7").await.body.contains("No election fits"));
    server.stop().await.unwrap();
}

/// What goes wrong is told to people as a page, and to programs as a problem.
#[tokio::test]
async fn people_are_told_by_a_page_and_programs_by_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("operators");
    std::fs::write(&path, "steer\n").unwrap();
    let (server, stranger) = serve(Options::new().operator_tokens(path)).await;
    let led = page(&stranger, "/election?name=a%2Fb").await;
    assert_eq!(led.status, 303, "{led:?}");
    assert_eq!(led.header("location"), Some("/login?next=%2Felection%3Fname%3Da%252Fb"));
    stranger.get("/v1/elections").await.is_problem(401, "unauthorized");
    let login = page(&stranger, "/login").await;
    assert!(login.status == 200 && login.body.contains("type=\"password\""), "{login:?}");

    let client = stranger.bearer("steer");
    let unknown = page(&client, "/election?name=%3Cb%3E").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("&lt;b&gt;") && !unknown.body.contains("<b>"), "{unknown:?}");
    assert_eq!(page(&client, "/election?name=").await.status, 400);
    assert_eq!(page(&client, "/election").await.status, 400);
    assert_eq!(page(&client, "/nothing").await.status, 404);
    client.get("/nothing").await.is_problem(404, "not_found");
    server.stop().await.unwrap();
}

/// Scripts and styles come from two files, which a browser keeps until another version runs.
#[tokio::test]
async fn pages_have_no_script_or_style_of_their_own() {
    let (server, client) = serve(Options::new()).await;
    let _led = lead(server.member(), "alpha").await;
    let mut assets = Vec::new();
    for path in ["/", "/election?name=alpha", "/members", "/names", "/journal", "/login"] {
        until("the page", async || page(&client, path).await.status == 200).await;
        let page = page(&client, path).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
        assert!(!page.body.contains(" style=") && !page.body.contains("<style"), "{path}");
        assert!(!page.body.contains(" onclick") && !page.body.contains("<script>"), "{path}");
        let links = page.body.split('"').filter(|part| part.starts_with("/assets/"));
        assets.extend(links.map(String::from));
    }
    assets.sort();
    assets.dedup();
    assert_eq!(assets.len(), 3, "{assets:?}");
    for asset in &assets {
        let found = client.raw("GET", asset).await;
        assert_eq!(found.status, 200, "{asset}");
        assert!(found.header("cache-control").unwrap().contains("immutable"), "{asset}");
        let other = asset.replace("/assets/", "/assets/0");
        assert_eq!(client.raw("GET", &other).await.header("cache-control"), Some("no-store"));
    }
    assert_eq!(client.raw("GET", "/assets/x/y").await.status, 404);
    server.stop().await.unwrap();
}
