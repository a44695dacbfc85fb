//! The dashboard: as it is written, and in a real Chromium.

#![allow(clippy::unwrap_used)]

mod accessible;
#[path = "../common/mod.rs"]
mod common;
// Pictures are taken by the example that shares it.
#[allow(dead_code)]
mod driver;
mod list;
mod live;
mod safe;
mod steering;
mod written;

use common::Client;
use driver::Browser;
use tenure::{Leadership, Tenure};
use tenure_server::{Options, Server};

/// A server with a browser.
struct World {
    server: Server,
    client: Client,
    /// The server's address.
    at: String,
    browser: Browser,
}

impl World {
    async fn new(options: Options) -> Option<Self> {
        Self::of(common::member("server"), options).await
    }

    /// `None` where there is no browser.
    async fn of(member: tenure::Builder, options: Options) -> Option<Self> {
        let Some(browser) = Browser::start().await else {
            tenure_testkit::cannot_test_here(
                "there is no Chromium with its driver, which `cargo xtask test` starts",
            );
            return None;
        };
        let server = Server::start(member, options).await.unwrap();
        let client = Client::of(&server);
        let at = server.addresses()[0].to_string();
        Some(Self { server, client, at, browser })
    }

    /// Opens a page, and waits until it is live.
    async fn open(&self, path: &str) {
        self.browser.go(&format!("{}{path}", self.at)).await;
        self.live().await;
    }

    async fn live(&self) {
        self.browser
            .until(
                "the live page",
                "return document.querySelector('#live[data-state=live]') !== null",
            )
            .await;
    }

    /// A member of the same store.
    async fn member(&self, id: &str) -> Tenure {
        let member = self.server.member().member_in("default").id(id).ttl(common::TTL);
        member.connect().await.unwrap()
    }

    /// Nothing failed in the pages, and the policy kept nothing out.
    async fn nothing_to_complain_of(&self) {
        let complaints = self.browser.complaints().await;
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}

/// One that stands and leads.
async fn lead(member: &Tenure, election: &str) -> Leadership {
    member.election(election).campaign().await.unwrap()
}
