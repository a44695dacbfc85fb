//! What a client says of itself when it begins a session, and what is made of it.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tenure::{MemberId, Settings, SettingsBuilder};

use crate::problem::{Answer, Problem};

/// The longest ttl and drain of a session: for how long a client that is gone can keep others
/// waiting.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// How a client asks for a session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// The client's id; one is made up if it is left out.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// How long the client may be silent, and how long its member lives without a heartbeat.
    #[serde(default)]
    pub(crate) ttl_ms: Option<u64>,
    /// How long the client may take to stop when it is asked to.
    #[serde(default)]
    pub(crate) drain_ms: Option<u64>,
    /// As of any candidate; 0 never leads.
    #[serde(default)]
    pub(crate) priority: Option<u16>,
    /// Where the client can be reached.
    #[serde(default)]
    pub(crate) endpoints: Vec<String>,
    /// What the client publishes.
    #[serde(default)]
    pub(crate) metadata: String,
}

impl NewSession {
    /// The timings of the client's member. Its clock is taken to be no worse than the server's
    /// own settings say.
    pub(super) fn timings(&self, server: &Settings) -> Answer<SettingsBuilder> {
        let ttl = span("ttl_ms", self.ttl_ms)?.unwrap_or(server.ttl());
        let timings = SettingsBuilder::ttl(ttl).drift_ppm(server.drift_ppm()).trusted_elsewhere();
        Ok(match span("drain_ms", self.drain_ms)? {
            Some(drain) => timings.drain(drain),
            None => timings,
        })
    }

    /// Whether another session of the same client was begun with the same profile.
    pub(super) fn is_like(&self, other: &NewSession, id: &MemberId) -> Answer<()> {
        let plain = |session: &NewSession| NewSession { priority: None, ..session.clone() };
        if plain(self) == plain(other) {
            return Ok(());
        }
        let what = format!("{id} has another session, with other endpoints, metadata or timings");
        let title = "the id is in use";
        Err(Problem::new(StatusCode::CONFLICT, "other_profile", title, what)
            .remedy("begin all sessions of a process alike, or give it another id"))
    }
}

fn span(what: &str, millis: Option<u64>) -> Answer<Option<Duration>> {
    let span = millis.map(Duration::from_millis);
    if span.is_some_and(|span| span > LONGEST) {
        let most = LONGEST.as_millis();
        let detail =
            format!("{what} is longer than {most} ms, the longest that a session may have");
        return Err(Problem::bad_request(detail)
            .remedy("ask for less: a client that is gone keeps the others waiting for that long"));
    }
    Ok(span)
}
