//! A client of a session, as a client in any language is.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::until;

use super::Client;

/// A client's session, as the answers tell of it.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) told: Value,
    /// Before the last request was sent.
    pub(crate) sent: Instant,
}

impl Session {
    pub(crate) async fn begin(client: &Client, election: &str, body: Value) -> Self {
        let sent = Instant::now();
        let answer = client.post(&format!("/v1/elections/{election}/sessions"), body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let told = answer.json();
        let key = told["session"].as_str().unwrap();
        assert_eq!(answer.header("location"), Some(&*format!("/v1/sessions/{key}")));
        Self { client: client.clone(), told, sent }
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", self.told["session"].as_str().unwrap())
    }

    pub(crate) async fn beat(&mut self, wait_ms: u64) {
        self.sent = Instant::now();
        let body = json!({ "seen": self.told["seen"], "wait_ms": wait_ms });
        self.told = self.client.post(&self.path("/beat"), body).await.json();
    }

    pub(crate) async fn until(&mut self, state: &str) {
        until(state, async || {
            if self.state() != state {
                self.beat(500).await;
            }
            self.state() == state
        })
        .await;
    }

    pub(crate) fn state(&self) -> &str {
        self.told["state"].as_str().unwrap()
    }

    /// Until when the client trusts (W1).
    pub(crate) fn trusted_until(&self) -> Instant {
        let millis = |key: &str| self.told[key].as_u64().unwrap();
        self.sent + Duration::from_millis(millis("remaining_ms").min(millis("ttl_ms")))
    }
}
