//! For all people: axe-core finds nothing serious, in light and dark, wide and narrow; and without
//! a script everything can be read.

use serde_json::{Value, json};
use tenure_server::Options;

use crate::{World, lead};

/// Elections in every state that can be had.
async fn populate(world: &World) -> Vec<tenure::Leadership> {
    let member = world.member("web-1").await;
    let operator = world.server.member().operator().clone();
    let mut led = Vec::new();
    for election in ["jobs", "paused", "stopping"] {
        led.push(lead(&member, election).await);
    }
    lead(&member, "vacant").await.resign().await.unwrap();
    for _ in 0..6 {
        lead(&member, "flapping").await.resign().await.unwrap();
    }
    led.push(lead(&member, "flapping").await);
    operator.election("paused").pause("disk 7 is full").await.unwrap();
    operator.election("stopping").ask_to_step_down("maintenance").await.unwrap();
    let name = tenure::naming::Name::new("user/42").unwrap();
    let value = tenure::naming::Value::at("10.0.0.7:9000").unwrap();
    let name = member.names().take(name, value).await.unwrap();
    // For as long as the test is under way.
    std::mem::forget((member, name));
    led
}

/// What axe-core finds that keeps people out.
async fn findings(world: &World) -> Vec<String> {
    let said = world
        .browser
        .run(
            "const { violations } = await axe.run(document, { resultTypes: ['violations'] }); \
             return violations.filter((found) => ['serious', 'critical'].includes(found.impact)) \
               .map((found) => found.id + ': ' + found.nodes.map((node) => node.html.slice(0, 200) \
               + ' ' + node.failureSummary).join('; '));",
        )
        .await;
    let said = said.as_array().cloned().unwrap_or_else(|| panic!("axe-core failed: {said}"));
    said.iter().map(Value::to_string).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_keeps_people_out() {
    let Some(world) = World::new(Options::new()).await else { return };
    let axe = std::env::var("TENURE_TEST_AXE").expect("`cargo xtask test` provides axe-core");
    let axe = std::fs::read_to_string(axe).unwrap();
    let _led = populate(&world).await;
    let pages = [
        "/",
        "/?show=paused",
        "/election?name=flapping",
        "/election?name=paused",
        "/election?name=stopping",
        "/election?name=vacant",
        "/members",
        "/names",
        "/journal",
    ];
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("dark", 390)] {
        world.browser.scheme(scheme).await;
        world.browser.size(width, 800, 1.0).await;
        for path in pages {
            world.open(path).await;
            world.browser.run(&axe).await;
            let found = findings(&world).await;
            assert!(found.is_empty(), "{path}, {scheme}, {width}: {found:#?}");
            let wide = world.browser.run("return document.documentElement.scrollWidth").await;
            assert!(wide.as_u64().unwrap() <= width as u64, "{path} is {wide} wide at {width}");
        }
        world.open("/election?name=flapping").await;
        world.browser.run(&axe).await;
        world.browser.click("[data-open=step-down]").await;
        let found = findings(&world).await;
        assert!(found.is_empty(), "the dialog, {scheme}, {width}: {found:#?}");
    }
    for path in ["/login", "/election?name=unknown"] {
        world.browser.go(&format!("{}{path}", world.at)).await;
        world.browser.run(&axe).await;
        let found = findings(&world).await;
        assert!(found.is_empty(), "{path}: {found:#?}");
    }
    world.server.stop().await.unwrap();
}

/// Without a script, what is on each page is what a reader of the screen is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_script_everything_can_be_read() {
    let Some(world) = World::new(Options::new()).await else { return };
    let _led = populate(&world).await;
    world.browser.chromium("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    for (path, wanted) in [
        ("/", &["vacant", "jobs", "web-1", "by server: disk 7 is full", "stepping down"][..]),
        ("/?show=paused&q=pau", &["paused", "web-1"]),
        ("/election?name=flapping", &["Leader", "web-1", "Term", "resigned", "stands"]),
        ("/members", &["web-1", "jobs", "server"]),
        ("/names", &["user/42", "web-1", "10.0.0.7:9000"]),
        ("/journal", &["web-1 leads with term 7", "paused by server: disk 7 is full"]),
    ] {
        world.browser.go(&format!("{}{path}", world.at)).await;
        let tree = world.browser.chromium("Accessibility.getFullAXTree", json!({})).await;
        let nodes = tree["nodes"].as_array().unwrap();
        let told: Vec<&str> = nodes
            .iter()
            .filter(|node| node["role"]["value"] == "StaticText")
            .filter_map(|node| node["name"]["value"].as_str())
            .collect();
        let told = told.join(" ");
        // Headings are set in capitals.
        let plain = told.to_lowercase();
        for text in wanted {
            assert!(plain.contains(&text.to_lowercase()), "{path} does not tell {text:?}: {told}");
        }
        assert!(told.contains("as of"), "{path} says of when it is: {told}");
    }
    world.server.stop().await.unwrap();
}
