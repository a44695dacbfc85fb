//! The way to the cluster: its endpoints, one after the other, and what their answers mean.
//!
//! etcd's JSON interface is asked, which every member serves beside the binary one. What must
//! stay true:
//!
//! - A request that never left goes to the next endpoint at once, whatever it is. One that
//!   left and was not answered goes there only if it changes nothing; of a write it is said
//!   that it may have been applied.
//! - An endpoint that failed is asked last from then on: no balancer comes back to a node
//!   that is dead.
//! - No endpoint may use up the time of a request: each gets a part of it. A node that is
//!   stopped, or on the smaller side of a cut, answers nothing.
//! - What answers is the cluster that was opened, and it has forgotten nothing: its number is
//!   the same, and its revision is not before one that an earlier answer told. After a restore
//!   from a snapshot it would be, and numbers would be given out twice. From then on every
//!   request is refused.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenure_store::{Error, ErrorKind, Result};

use crate::messages::{Authenticated, Header, Refused};
use crate::options::EtcdOptions;

/// More than any answer of ours: a claim's cells, or a listing's page.
const MOST_SAID: usize = 64 << 20;

/// Whether a request changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Writes,
}

/// The way to one cluster.
pub(crate) struct Wire {
    client: Client,
    endpoints: Vec<String>,
    /// Which endpoint is asked first.
    first: AtomicUsize,
    timeout: Duration,
    login: Option<(String, String)>,
    token: Mutex<Option<String>>,
    seen: Seen,
}

/// Without the password and the token.
impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

/// What was seen of the cluster.
#[derive(Debug, Default)]
struct Seen {
    /// Zero until an answer told it.
    cluster: AtomicU64,
    revision: AtomicU64,
    went_back: AtomicBool,
}

/// Why an attempt at one endpoint did not do.
enum Failed {
    /// It never left.
    Unsent(Error),
    /// It left, and was not answered.
    Unanswered(Error),
    /// The token is not taken any more.
    LoggedOut,
    /// An answer that no endpoint would give otherwise.
    Final(Error),
}

impl Wire {
    pub(crate) fn new(options: &EtcdOptions) -> Result<Self> {
        let attempt = part(options.timeout());
        let client = Client::builder()
            .tls_backend_preconfigured(options.tls.config()?)
            .connect_timeout(attempt)
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            // A peer that is gone without a word is noticed while a watch waits.
            .tcp_keepalive(Duration::from_secs(2))
            .tcp_keepalive_interval(Duration::from_secs(2))
            .tcp_keepalive_retries(3)
            .user_agent(concat!("tenure/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| {
            Error::new(ErrorKind::Internal, "the HTTP client could not be made").caused_by(error)
        })?;
        Ok(Self {
            client,
            endpoints: options.endpoints().to_vec(),
            first: AtomicUsize::new(0),
            timeout: options.timeout(),
            login: options.login(),
            token: Mutex::new(None),
            seen: Seen::default(),
        })
    }

    /// Asks, and reads the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        effect: Effect,
    ) -> Result<T> {
        let body = body.to_string();
        let asked = self.attempts(path, &body, effect);
        let text = match tokio::time::timeout(self.timeout, asked).await {
            Ok(answered) => answered?,
            Err(_) => {
                let error = unanswered(&self.endpoints.join(", "), ErrorKind::Timeout);
                return Err(if effect == Effect::Writes { error.maybe_applied() } else { error });
            }
        };
        serde_json::from_str(&text).map_err(|error| {
            let error = Error::new(ErrorKind::Foreign, "an answer is none of etcd's")
                .caused_by(error)
                .remedy("check that the URL names etcd's client port");
            if effect == Effect::Writes { error.maybe_applied() } else { error }
        })
    }

    /// The endpoints, one after the other.
    async fn attempts(&self, path: &str, body: &str, effect: Effect) -> Result<String> {
        let mut last = None;
        // Once more than there are: a token may have to be asked for anew.
        for _ in 0..=self.endpoints.len() {
            let endpoint = self.endpoint();
            let answered = async {
                let response = self.send(&endpoint, path, body.to_owned()).await?;
                self.text(&endpoint, response).await
            };
            let failed = match tokio::time::timeout(part(self.timeout), answered).await {
                Ok(Ok(text)) => return Ok(text),
                Ok(Err(failed)) => failed,
                Err(_) => Failed::Unanswered(unanswered(&endpoint, ErrorKind::Timeout)),
            };
            match failed {
                Failed::LoggedOut => {
                    self.set_token(None);
                    last = Some(denied("the token was refused again"));
                    continue;
                }
                Failed::Final(error) => {
                    // What is wrong may be wrong with this endpoint alone.
                    self.skip(&endpoint);
                    return Err(error);
                }
                Failed::Unsent(error) => last = Some(error),
                Failed::Unanswered(error) => {
                    if effect == Effect::Writes {
                        self.skip(&endpoint);
                        return Err(error.maybe_applied());
                    }
                    last = Some(error);
                }
            }
            self.skip(&endpoint);
        }
        Err(last.unwrap_or_else(|| unanswered(&self.endpoints.join(", "), ErrorKind::Unreachable)))
    }

    /// Sends one request to one endpoint; the answer is a success, and its body not read yet.
    async fn send(&self, endpoint: &str, path: &str, body: String) -> Result<Response, Failed> {
        let mut request = self.client.post(format!("{endpoint}{path}")).body(body);
        if let Some(token) = self.token(endpoint).await? {
            request = request.header("authorization", token);
        }
        let response = request.send().await.map_err(|error| lost(endpoint, error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        Err(refusal(endpoint, status, &text))
    }

    async fn text(&self, endpoint: &str, response: Response) -> Result<String, Failed> {
        let mut response = response;
        let mut text = Vec::new();
        while let Some(more) = response.chunk().await.map_err(|error| lost(endpoint, error))? {
            text.extend_from_slice(&more);
            if text.len() > MOST_SAID {
                let error =
                    Error::new(ErrorKind::Foreign, format!("{endpoint} answers without end"));
                return Err(Failed::Unanswered(
                    error.remedy("check that the URL names etcd's client port"),
                ));
            }
        }
        String::from_utf8(text).map_err(|_| {
            Failed::Unanswered(Error::new(ErrorKind::Foreign, "an answer is none of etcd's"))
        })
    }

    /// Opens a stream of answers at the endpoint that is asked first.
    pub(crate) async fn stream(&self, path: &str, body: String) -> Result<(String, Response)> {
        let endpoint = self.endpoint();
        let sent = self.send(&endpoint, path, body);
        match tokio::time::timeout(part(self.timeout), sent).await {
            Ok(Ok(response)) => Ok((endpoint, response)),
            Ok(Err(failed)) => {
                self.skip(&endpoint);
                Err(match failed {
                    Failed::LoggedOut => {
                        self.set_token(None);
                        denied("the token was refused")
                    }
                    Failed::Unsent(e) | Failed::Unanswered(e) | Failed::Final(e) => e,
                })
            }
            Err(_) => {
                self.skip(&endpoint);
                Err(unanswered(&endpoint, ErrorKind::Timeout))
            }
        }
    }

    fn endpoint(&self) -> String {
        let first = self.first.load(Ordering::Relaxed);
        self.endpoints[first % self.endpoints.len()].clone()
    }

    /// From now on another endpoint is asked first.
    pub(crate) fn skip(&self, endpoint: &str) {
        let at = self.endpoints.iter().position(|known| known == endpoint).unwrap_or(0);
        let next = (at + 1) % self.endpoints.len();
        // Another request may have noticed already.
        let _ = self.first.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What requests are sent with, where the cluster wants users to log in.
    async fn token(&self, endpoint: &str) -> Result<Option<String>, Failed> {
        let Some((name, password)) = &self.login else { return Ok(None) };
        if let Some(token) = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(Some(token));
        }
        let body = json!({"name": name, "password": password}).to_string();
        let request = self.client.post(format!("{endpoint}/v3/auth/authenticate")).body(body);
        let response = request.send().await.map_err(|error| match lost(endpoint, error) {
            // The request itself has not left yet.
            Failed::Unanswered(error) => Failed::Unsent(error),
            failed => failed,
        })?;
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        if !status.is_success() {
            return Err(match refusal(endpoint, status, &text) {
                Failed::Unanswered(error) => Failed::Unsent(error),
                failed => failed,
            });
        }
        let said: Authenticated = serde_json::from_str(&text)
            .map_err(|_| Failed::Final(denied("the answer to the login has no token")))?;
        self.set_token(Some(said.token.clone()));
        Ok(Some(said.token))
    }

    fn set_token(&self, token: Option<String>) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// The revision before which no later answer may be.
    pub(crate) fn revision(&self) -> u64 {
        self.seen.revision.load(Ordering::Acquire)
    }

    /// Compares an answer with what was seen `before` its request was sent.
    pub(crate) fn check(&self, header: Header, before: u64) -> Result<()> {
        let known = self.seen.cluster.compare_exchange(
            0,
            header.cluster_id,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let is_another = known.is_err_and(|known| known != header.cluster_id);
        if is_another || header.revision < before {
            self.seen.went_back.store(true, Ordering::Release);
        }
        if self.seen.went_back.load(Ordering::Acquire) {
            return Err(went_back());
        }
        self.seen.revision.fetch_max(header.revision, Ordering::AcqRel);
        Ok(())
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The time that one endpoint gets of a request's.
fn part(timeout: Duration) -> Duration {
    (timeout / 3).max(Duration::from_millis(100)).min(timeout)
}

fn unanswered(endpoint: &str, kind: ErrorKind) -> Error {
    Error::new(kind, format!("etcd at {endpoint} did not answer"))
        .remedy("start it, or check hosts and ports")
}

fn denied(what: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("etcd does not let us: {what}"))
        .remedy("check the user and the password")
}

fn went_back() -> Error {
    let what = "the cluster is another one than before, or it has forgotten what it had answered: \
                it was restored from a snapshot";
    Error::new(ErrorKind::Foreign, what).remedy(
        "stop the members, call `tenure restored`, which makes numbers go on above those that \
         were forgotten, and start them again",
    )
}

/// A request that was not answered.
fn lost(endpoint: &str, error: reqwest::Error) -> Failed {
    let never_sent = error.is_connect() || error.is_builder();
    let what = format!("etcd at {endpoint} did not answer");
    // The URL has no secret in it, and says nothing that the endpoint does not.
    let error = Error::new(ErrorKind::Unreachable, what)
        .caused_by(error.without_url())
        .remedy("start it, or check hosts, ports and TLS");
    if never_sent { Failed::Unsent(error) } else { Failed::Unanswered(error) }
}

/// What an answer means that is no success: by gRPC's codes, which the JSON has too.
fn refusal(endpoint: &str, status: StatusCode, text: &str) -> Failed {
    let refused: Refused = serde_json::from_str(text).unwrap_or_default();
    let said = match refused.message.as_str() {
        "" => refused.error.as_str().unwrap_or_default().to_owned(),
        said => said.to_owned(),
    };
    let short: String = said.chars().take(300).collect();
    let error = |kind, what: String| Error::new(kind, what);
    let is = |part: &str| said.contains(part);
    match refused.code {
        _ if is("invalid auth token") || is("revision of auth store is old") => Failed::LoggedOut,
        _ if is("user name is empty") => {
            Failed::Final(denied("it wants a user").remedy("write etcd://user@host, or set ETCD_USER and ETCD_PASSWORD"))
        }
        _ if is("authentication failed") => Failed::Final(denied("the user or the password is wrong")),
        _ if is("authentication is not enabled") => Failed::Final(
            error(ErrorKind::Invalid, "a user was given, and etcd has no users".into())
                .remedy("take the user out of the URL and ETCD_USER, or enable authentication"),
        ),
        7 => Failed::Final(denied("the user has no right to this").remedy(
            "grant its role readwrite on the prefix: etcdctl role grant-permission ROLE \
             --prefix=true readwrite PREFIX/",
        )),
        // Checked before a write is applied and once more after, so that one may have been.
        8 if is("space exceeded") => Failed::Final(
            error(ErrorKind::Busy, format!("etcd's quota is full ({short})"))
                .remedy(
                    "compact its history, defragment its members and disarm the alarm: etcdctl \
                     compact, defrag, alarm disarm",
                )
                .maybe_applied(),
        ),
        8 => Failed::Final(error(ErrorKind::Busy, format!("etcd is busy: {short}"))),
        3 | 9 | 11 | 12 => Failed::Final(
            error(ErrorKind::Invalid, format!("etcd refuses the request: {short}"))
                .remedy("check its version and --max-txn-ops, which must be at least 128"),
        ),
        _ if status == StatusCode::NOT_FOUND => Failed::Final(
            error(ErrorKind::Invalid, format!("{endpoint} has no interface /v3 of etcd"))
                .remedy("use etcd 3.4 or newer, with its JSON interface (--enable-grpc-gateway, on unless turned off), and its client port"),
        ),
        _ => Failed::Unanswered(error(
            ErrorKind::Unreachable,
            format!("etcd at {endpoint} cannot serve: {status} {short}"),
        ).remedy("see whether most of its members run")),
    }
}
