//! Who may steer does so in a dialog, by the keyboard if they like; others see no button.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure::{Stopping, Tenure};
use tenure_server::Options;
use tenure_testkit::until;

use crate::driver::{ENTER, ESCAPE, TAB};
use crate::{World, lead};

/// A name that is not ASCII is typed like any other.
const ELECTION: &str = "größe/7";

async fn now(world: &World) -> Value {
    world.client.get("/v1/elections/gr%C3%B6%C3%9Fe%2F7?fresh=1").await.json()
}

/// Leads until it is asked to stop, again and again.
fn work(member: &Tenure, priority: u16) {
    let election = member.election(ELECTION).priority(priority);
    tokio::spawn(async move {
        while let Ok(leadership) = election.campaign().await {
            if let Stopping::Asked { .. } = leadership.stopping().await {
                drop(leadership.resign().await);
            }
        }
    });
}

async fn open(world: &World) {
    world.open("/election?name=gr%C3%B6%C3%9Fe%2F7").await;
}

/// Goes to a button by the keyboard.
async fn focus(world: &World, what: &str) {
    for _ in 0..60 {
        let focused = world.browser.run("return document.activeElement.innerText").await;
        if focused.as_str().is_some_and(|text| text.trim().starts_with(what)) {
            return;
        }
        world.browser.keys(TAB).await;
    }
    panic!("{what} is not reached by Tab");
}

/// Each verb is carried out once the name was typed, and not before, without a mouse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_steered_by_the_keyboard() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    work(&world.member("web-1").await, 9);
    until("web-1 to lead", async || now(&world).await["leader"]["id"] == "web-1").await;
    work(&world.member("web-2").await, 5);
    until("two candidates", async || now(&world).await["candidates"][1] != json!(null)).await;
    open(&world).await;

    // Escape does nothing, and gives the focus back.
    focus(&world, "Pause").await;
    browser.keys(ENTER).await;
    browser
        .until("the dialog", "return document.querySelector('dialog#pause[open]') !== null")
        .await;
    browser.keys(ESCAPE).await;
    browser.until("the button", "return document.activeElement.dataset.open === 'pause'").await;

    browser.keys(ENTER).await;
    browser.until("the reason", "return document.activeElement.name === 'reason'").await;
    browser.keys("disk 7 is full").await;
    browser.keys(TAB).await;
    browser.keys("größe").await;
    let disabled = "return document.querySelector('#pause [type=submit]').disabled";
    assert_eq!(browser.run(disabled).await, json!(true), "part of the name confirms nothing");
    browser.keys("/7").await;
    assert_eq!(browser.run(disabled).await, json!(false));
    browser.keys(ENTER).await;
    until("the pause", async || now(&world).await["paused"]["reason"] == "disk 7 is full").await;
    browser.until("the mark", "return document.querySelector('#head .paused') !== null").await;
    assert!(browser.text("#said").await.contains("Pause"));

    focus(&world, "Resume").await;
    browser.keys(ENTER).await;
    browser
        .until("the dialog", "return document.querySelector('dialog#resume[open]') !== null")
        .await;
    browser.keys(&format!("{ELECTION}{ENTER}")).await;
    until("the end of the pause", async || now(&world).await["paused"] == json!(null)).await;
    browser
        .until("the mark to go", "return document.querySelector('#head .paused') === null")
        .await;

    focus(&world, "Hand over").await;
    browser.keys(ENTER).await;
    browser
        .until("the dialog", "return document.querySelector('dialog#hand-over[open]') !== null")
        .await;
    assert!(browser.text("dialog[open] .steps").await.contains("web-1 is told to stop its work"));
    browser.keys(&format!("{TAB}rebalancing{TAB}{ELECTION}{ENTER}")).await;
    until("the successor", async || now(&world).await["leader"]["id"] == "web-2").await;
    browser
        .until("its name", "return document.querySelector('#leader .big')?.textContent === 'web-2'")
        .await;
    assert!(browser.text("#recent").await.contains("rebalancing"));
    world.nothing_to_complain_of().await;

    // A term that has ended meanwhile is not the one that was meant.
    browser.click("[data-open=step-down]").await;
    browser.run("document.querySelector('#step-down [name=term]').value = '1'; return 1").await;
    browser.run("document.querySelector('#step-down-name').focus(); return 1").await;
    browser.keys(&format!("{ELECTION}{ENTER}")).await;
    let refused = "const said = document.querySelector('#step-down .refused'); return said.hidden ? null : said.innerText";
    let refused = browser.until("the refusal", refused).await;
    assert!(refused.as_str().unwrap().contains("term 1 of"), "{refused}");
    assert_eq!(now(&world).await["step_down"], json!(null));
    world.server.stop().await.unwrap();
}

/// A member is evicted from the page of members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_evicted() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    let member = world.member("web-1").await;
    let leadership = lead(&member, "jobs").await;
    world.open("/members").await;
    let row = "return [...document.querySelectorAll('#members tbody tr')] \
               .some((row) => row.innerText.includes('web-1') && row.innerText.includes('jobs'))";
    browser.until("the member", row).await;
    let script = "[...document.querySelectorAll('#members tbody tr')] \
                  .find((row) => row.innerText.includes('web-1')).querySelector('button').click(); return 1;";
    browser.run(script).await;
    browser.click("dialog[open] [name=now]").await;
    browser.run("document.querySelector('dialog[open] .confirm').focus(); return 1").await;
    browser.keys(&format!("web-1{ENTER}")).await;
    tenure_testkit::within(leadership.lost()).await;
    world.nothing_to_complain_of().await;
    world.server.stop().await.unwrap();
}

fn token_file(dir: &Path, scope: &str) -> PathBuf {
    let path = dir.join(scope);
    std::fs::write(&path, format!("{scope}-token\n")).unwrap();
    path
}

/// A viewer logs in, sees everything and no button, and is refused what it asks for; an operator
/// has buttons.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_sees_no_buttons() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new()
        .viewer_tokens(token_file(dir.path(), "viewer"))
        .operator_tokens(token_file(dir.path(), "operator"));
    let Some(world) = World::new(options).await else { return };
    let browser = &world.browser;
    let member = world.member("web-1").await;
    let _leadership = lead(&member, "jobs").await;

    browser.go(&format!("{}/election?name=jobs", world.at)).await;
    assert!(browser.url().await.contains("/login?next="), "a page without a token is the login");
    browser.keys(&format!("wrong{ENTER}")).await;
    let refused = "return !document.querySelector('#refused').hidden";
    browser.until("the refusal", refused).await;
    browser.keys(&format!("viewer-token{ENTER}")).await;
    browser
        .until("the page", "return document.querySelector('#leader .big')?.textContent === 'web-1'")
        .await;
    for path in ["/election?name=jobs", "/members", "/", "/journal"] {
        world.open(path).await;
        assert_eq!(browser.count("[data-open], dialog").await, 0, "{path}");
        assert!(browser.text("footer").await.contains("viewer"));
    }
    for path in
        ["/v1/elections/jobs/pause", "/v1/elections/jobs/step-down", "/v1/members/web-1/evict"]
    {
        let script = "const answer = await fetch(arguments[0], { method: 'POST', body: '{}', \
                      headers: { 'content-type': 'application/json' } }); return answer.status;";
        assert_eq!(browser.run_with(script, path).await, json!(403), "{path}");
    }
    browser.click(".logout button").await;
    browser.until("the login", "return document.querySelector('#token') !== null").await;
    browser.keys(&format!("operator-token{ENTER}")).await;
    browser.until("the list", "return document.querySelector('#elections') !== null").await;
    world.open("/election?name=jobs").await;
    assert!(browser.count("[data-open]").await >= 3);
    world.server.stop().await.unwrap();
}

/// The login leads to pages of this server alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_login_leads_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().viewer_tokens(token_file(dir.path(), "viewer"));
    let Some(world) = World::new(options).await else { return };
    for next in
        ["//evil.example/", "https:evil.example", "javascript:alert(1)", "http://evil.example"]
    {
        world.browser.go(&format!("{}/login?next={next}", world.at)).await;
        world.browser.keys(&format!("viewer-token{ENTER}")).await;
        world
            .browser
            .until(
                "another page",
                "return document.querySelector('main') && !document.querySelector('#token')",
            )
            .await;
        assert!(world.browser.url().await.starts_with(&world.at), "{next}");
    }
    world.server.stop().await.unwrap();
}
