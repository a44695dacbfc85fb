//! Makes the pictures of the documentation: a real server, real members, real hand-overs, a
//! crash, and what a browser shows of them.
//!
//! `cargo xtask screenshots` runs it with a browser. The argument is the folder to write to.

#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub)]

#[allow(dead_code)]
#[path = "../tests/dashboard/driver.rs"]
mod driver;

use std::path::Path;
use std::time::Duration;

use driver::Browser;
use tenure::{Leadership, Stopping, Tenure};
use tenure_server::{Options, Server};

/// Short enough that a crash and what follows it take seconds.
const TTL: Duration = Duration::from_secs(4);

/// Elections, each with who is to lead it and who waits.
const ELECTIONS: [(&str, &[&str]); 12] = [
    ("billing/invoices", &["node-a", "node-b", "node-c"]),
    ("billing/reminders", &["node-b", "node-c"]),
    ("cron/cleanup", &["node-c", "node-a"]),
    ("cron/nightly-report", &["node-a", "node-b", "node-c"]),
    ("export/warehouse", &["node-b"]),
    ("imports/prices", &["node-c", "node-b"]),
    ("mail/outbox", &["node-a", "node-c"]),
    ("migrations", &["node-b", "node-a", "node-c"]),
    ("queue/orders", &["node-c", "node-a", "node-b"]),
    ("queue/returns", &["node-d"]),
    ("search/indexer", &["node-b", "node-a"]),
    ("shard/eu-1", &["node-a", "node-b"]),
];

/// The one whose page is shown.
const SHOWN: &str = "queue/orders";

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let browser = Browser::start().await.expect("a browser: run `cargo xtask screenshots`");
    let dir = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", dir.path().join("elections.db").display());
    let member = |id: &str| Tenure::builder(&store).id(id).ttl(TTL).prove_death(false);
    let server = Server::start(member("tenure-serve"), Options::new()).await.unwrap();
    let at = server.addresses()[0].to_string();
    let nodes = ["node-a", "node-b", "node-c", "node-d"];
    let mut members = Vec::new();
    for (n, id) in nodes.iter().enumerate() {
        let endpoint = format!("10.0.3.{}:8080", 11 + n);
        let member = member(id).endpoint(endpoint).metadata("eu-central, v2.14.1");
        members.push(member.connect().await.unwrap());
    }
    let of = |id: &str| members[nodes.iter().position(|node| *node == id).unwrap()].clone();
    let picture = Pictures { folder: &folder, at: &at, browser: &browser };

    for (election, stands) in ELECTIONS {
        for (n, id) in stands.iter().enumerate() {
            work(&of(id), election, 100 - 10 * u16::try_from(n).unwrap());
            let operator = server.member().operator().clone();
            wait(async || operator.election(election).leader().await.unwrap().is_some()).await;
        }
    }
    let _names = names(&members[0]).await;
    let operator = server.member().operator().clone();
    // Hand-overs, some asked for by people.
    for (to, reason) in
        [("node-a", "deploying v2.14.1"), ("node-b", "node-a runs hot"), ("node-c", "")]
    {
        hand_over(&operator, SHOWN, to, reason).await;
        pause(Duration::from_millis(2_500)).await;
    }
    // A member is gone without a word, and comes back.
    operator.evict_now(of("node-c").id()).await.unwrap();
    pause(Duration::from_secs(6)).await;
    for to in ["node-b", "node-a"] {
        hand_over(&operator, SHOWN, to, "rebalancing").await;
        pause(Duration::from_millis(2_000)).await;
    }
    members[3].clone().shutdown().await.unwrap();
    operator.election("migrations").pause("schema change 482").await.unwrap();
    operator.election("export/warehouse").pause("disk is full").await.unwrap();
    operator.election("export/warehouse").ask_to_step_down("disk is full").await.unwrap();
    pause(Duration::from_secs(2)).await;

    let page = format!("/election?name={}", SHOWN.replace('/', "%2F"));
    for scheme in ["light", "dark"] {
        picture.of(&format!("elections-{scheme}"), "/", 1180, 572, scheme).await;
    }
    picture.of("election", &page, 1180, 740, "light").await;
    picture.of("phone", "/", 390, 640, "dark").await;
    picture.dialog(&page).await;
    drop(browser);
    server.stop().await.unwrap();
}

/// Stands again and again, and stops at once when it is asked to.
fn work(member: &Tenure, election: &str, priority: u16) {
    let election = member.election(election).priority(priority);
    tokio::spawn(async move {
        while let Ok(leadership) = election.campaign().await {
            lead(leadership).await;
        }
    });
}

async fn lead(leadership: Leadership) {
    if let Stopping::Asked { .. } = leadership.stopping().await {
        pause(Duration::from_millis(150)).await;
        drop(leadership.resign().await);
    }
}

/// Asks until it is so: a member that has just stepped down does not bid for a while.
async fn hand_over(operator: &tenure::Operator, election: &str, to: &str, reason: &str) {
    let election = operator.election(election);
    let to = tenure::MemberId::new(to).unwrap();
    let leads = async || election.leader().await.unwrap().is_some_and(|led| led.member.id == to);
    while !leads().await {
        election.ask_to_hand_over(&to, reason).await.unwrap();
        pause(Duration::from_secs(1)).await;
    }
}

async fn names(member: &Tenure) -> Vec<tenure::naming::Registration> {
    let mut mine = Vec::new();
    for (name, at) in [
        ("session:user/1042", "10.0.3.11:9000"),
        ("session:user/2210", "10.0.3.11:9000"),
        ("session:user/3377", "10.0.3.11:9000"),
        ("shard:eu-1/0042", "10.0.3.11:9100"),
    ] {
        let name = tenure::naming::Name::new(name).unwrap();
        let value = tenure::naming::Value::at(at).unwrap();
        mine.push(member.names().take(name, value).await.unwrap());
    }
    mine
}

async fn wait(mut there: impl AsyncFnMut() -> bool) {
    while !there().await {
        pause(Duration::from_millis(50)).await;
    }
}

async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

struct Pictures<'a> {
    folder: &'a str,
    at: &'a str,
    browser: &'a Browser,
}

impl Pictures<'_> {
    async fn of(&self, name: &str, path: &str, width: u32, height: u32, scheme: &str) {
        self.browser.size(width, height, 1.0).await;
        self.browser.scheme(scheme).await;
        self.browser.go(&format!("{}{path}", self.at)).await;
        self.browser
            .until(
                "the live page",
                "return document.querySelector('#live[data-state=live]') !== null",
            )
            .await;
        pause(Duration::from_millis(400)).await;
        self.write(name).await;
    }

    async fn dialog(&self, page: &str) {
        self.of("dialog", page, 900, 640, "light").await;
        self.browser.click("[data-open=hand-over]").await;
        self.browser
            .run("document.querySelector('#hand-over-reason').value = 'draining the node'")
            .await;
        self.write("dialog").await;
    }

    async fn write(&self, name: &str) {
        let path = Path::new(self.folder).join(format!("{name}.png"));
        std::fs::write(&path, self.browser.picture().await).unwrap();
        println!("{}", path.display());
    }
}
