//! The page of all elections, with none, one and ten thousand.

use serde_json::json;
use tenure_server::Options;

use crate::driver::{DOWN, ENTER};
use crate::{World, lead};

/// How many elections a large namespace has here.
const MANY: usize = 10_000;

/// Without an election the page says how there comes to be one; the first one appears by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_election_and_the_first_one() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    world.open("/").await;
    assert!(browser.text("main").await.contains("tenure run --election"));
    let member = world.member("web-1").await;
    let leadership = lead(&member, "nightly").await;
    let led = "return document.querySelector('tr[data-state=led] .who')?.textContent === 'web-1'";
    browser.until("the first election", led).await;
    assert_eq!(browser.count("#elections tbody tr[data-state]").await, 1);
    assert_eq!(browser.count("#empty:not([hidden])").await, 0, "it is no longer said to be empty");
    let ttl = browser.text("#elections .secs").await;
    assert!(ttl.ends_with('s'), "what is left of the ttl is counted down: {ttl:?}");
    leadership.resign().await.unwrap();
    browser
        .until("the vacancy", "return document.querySelector('tr[data-state=vacant]') !== null")
        .await;
    assert!(browser.text("#elections tbody tr[data-state]").await.contains("vacant"));
    world.nothing_to_complain_of().await;
    world.server.stop().await.unwrap();
}

/// Ten thousand elections are filtered in less than 100 ms and scroll without gaps, although the
/// page has a row only for what is in sight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_elections_are_filtered_and_scrolled() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    let operator = world.server.member().operator().clone();
    for n in 0..MANY {
        operator.election(format!("shard/{n:05}")).pause("").await.unwrap();
    }
    operator.election("shard/04711").resume().await.unwrap();
    let _led = lead(world.server.member(), "shard/04711").await;
    world.open("/").await;
    let all =
        format!("return document.querySelector('[data-show=all] b').textContent === '{}'", MANY);
    browser.until("all elections", &all).await;
    browser.until("the script", "return document.querySelectorAll('tr.pad').length === 2").await;
    assert!(browser.count("#elections tr").await < 200, "rows out of sight are not in the page");
    assert_eq!(
        browser.run("return document.querySelector('#elections').ariaRowCount").await,
        json!("10001")
    );

    // What a keystroke costs until the page is laid out anew; the best of each, since the
    // machine has other work.
    let costs = browser
        .run(
            "const search = document.querySelector('#q'); const costs = {}; \
             for (const text of ['0', '04', '047', '0471', '', 'server']) { \
               let best = Infinity; \
               for (let n = 0; n < 5; n++) { \
                 search.value = n ? '' : 'x'; search.dispatchEvent(new Event('input')); \
                 const began = performance.now(); \
                 search.value = text; search.dispatchEvent(new Event('input')); \
                 document.body.getBoundingClientRect(); \
                 best = Math.min(best, performance.now() - began); \
               } \
               costs[text] = best; \
             } \
             return costs;",
        )
        .await;
    eprintln!("filtering {MANY} elections, ms for each text: {costs}");
    for (text, cost) in costs.as_object().unwrap() {
        assert!(cost.as_f64().unwrap() < 100.0, "{text:?} took {cost} ms");
    }
    browser
        .until(
            "the one that is led",
            "return document.querySelectorAll('tbody tr[data-state]').length === 1",
        )
        .await;
    assert!(browser.text("tbody tr[data-state]").await.contains("shard/04711"));

    // A person scrolls: in each frame there is a row at each place in sight.
    let scrolled = browser
        .run(
            "const search = document.querySelector('#q'); search.value = ''; \
             search.dispatchEvent(new Event('input')); \
             const frame = () => new Promise((next) => requestAnimationFrame(next)); \
             const row = () => document.elementFromPoint(400, innerHeight / 2)?.closest('tr[data-state]'); \
             let gaps = 0; const spans = []; let last = performance.now(); \
             for (let n = 0; n < 60; n++) { \
               scrollBy(0, n < 40 ? 120 : 9000); await frame(); await frame(); \
               if (!row()) gaps++; \
               spans.push(performance.now() - last); last = performance.now(); \
             } \
             spans.sort((a, b) => a - b); \
             return { gaps, median: spans[30], name: row().querySelector('.name').innerText };",
        )
        .await;
    eprintln!("scrolling {MANY} elections, two frames each: {scrolled}");
    assert_eq!(scrolled["gaps"], 0, "{scrolled}");
    assert!(scrolled["name"].as_str().unwrap() > "shard/04000", "{scrolled}");
    world.nothing_to_complain_of().await;
    world.server.stop().await.unwrap();
}

/// Without a mouse: to the filter, to a row, to a page, and back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_reached_by_the_keyboard() {
    let Some(world) = World::new(Options::new()).await else { return };
    let browser = &world.browser;
    let member = world.member("web-1").await;
    let mut led = Vec::new();
    for election in ["alpha", "beta/one", "beta/two"] {
        led.push(lead(&member, election).await);
    }
    world.open("/").await;
    browser
        .until("all rows", "return document.querySelectorAll('tbody tr[data-state]').length === 3")
        .await;
    browser.keys("/beta").await;
    browser
        .until(
            "the filter",
            "return document.querySelectorAll('tbody tr[data-state]').length === 2",
        )
        .await;
    assert!(browser.url().await.ends_with("?q=beta"), "the address has the filter");
    browser.keys(DOWN).await;
    browser.keys(DOWN).await;
    let focused = "return document.activeElement.closest('tr')?.innerText.includes('beta/two')";
    browser.until("the second row", focused).await;
    browser.keys(ENTER).await;
    browser
        .until("its page", "return document.querySelector('h1')?.textContent === 'beta/two'")
        .await;
    world.live().await;
    world.nothing_to_complain_of().await;
    world.server.stop().await.unwrap();
}
