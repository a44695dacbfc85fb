//! The way to the service: one HTTP client, and a
//! witness who writes down what was really answered.
//!
//! The witness is here because the answer to a conditional write must be read to
//! the letter. `object_store` folds answers together (404 of a missing object
//! and of a missing bucket, 412 of a version and of a foreign lease), and keeps
//! the text for itself. A [`Note`] travels with each request and comes back with
//! the status and the service's own code, or with how the connection failed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use tenure_store::tls::Tls;
use tenure_store::{Error, ErrorKind, Result};

use crate::answer::{Answer, Heard};

/// More than any service's error text; less than what could fill memory.
const MOST_SAID: usize = 64 * 1024;

/// What became of one request. Clones write to the same note.
#[derive(Clone, Debug, Default)]
pub(crate) struct Note(Arc<Mutex<Option<Heard>>>);

impl Note {
    /// To be sent along with a request.
    pub(crate) fn extensions(&self) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(self.clone());
        extensions
    }

    /// What was heard; `None` if the request was never sent.
    pub(crate) fn heard(&self) -> Option<Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, heard: Heard) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(heard);
    }
}

/// Makes clients. All clients of one connector share its connections.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    client: reqwest::Client,
}

impl Wire {
    /// A way to services, on which a request may take `timeout`.
    pub(crate) fn new(timeout: Duration, tls: &Tls) -> Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.config()?)
            .timeout(timeout)
            .connect_timeout(timeout)
            // A redirect is an answer about the region. Its signature would be
            // wrong at the other place anyhow.
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .user_agent(concat!("tenure/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| {
            Error::new(ErrorKind::Internal, "the HTTP client could not be made")
                .caused_by(Said(chain(&error)))
        })?;
        Ok(Self { client })
    }

    pub(crate) fn client(&self) -> HttpClient {
        HttpClient::new(Witness { inner: HttpClient::new(self.client.clone()) })
    }

    /// Sends a request of our own, and gives its answer whole.
    pub(crate) async fn send(
        &self,
        request: http::Request<HttpRequestBody>,
    ) -> Result<(http::response::Parts, Vec<u8>), Heard> {
        let response = self.client().execute(request).await.map_err(|error| lost(&error))?;
        let (parts, body) = response.into_parts();
        let bytes = body.bytes().await.map_err(|error| lost(&error))?;
        if parts.status.is_success() {
            return Ok((parts, bytes.into()));
        }
        let text = String::from_utf8_lossy(&bytes);
        Err(Heard::Answer(Answer::read(parts.status.as_u16(), &text)))
    }
}

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(self.client())
    }
}

/// Passes requests on and notes what came back.
#[derive(Debug)]
struct Witness {
    inner: HttpClient,
}

#[async_trait]
impl HttpService for Witness {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let note = request.extensions().get::<Note>().cloned().unwrap_or_default();
        let response = match self.inner.execute(request).await {
            Ok(response) => response,
            Err(error) => {
                note.write(lost(&error));
                return Err(error);
            }
        };
        let status = response.status();
        if status.is_success() {
            note.write(Heard::Answer(Answer::bare(status.as_u16())));
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let bytes = match body.bytes().await {
            Ok(bytes) => bytes,
            Err(error) => {
                // The status is there: that is answer enough.
                note.write(Heard::Answer(Answer::bare(status.as_u16())));
                return Err(error);
            }
        };
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_SAID)]);
        note.write(Heard::Answer(Answer::read(status.as_u16(), &text)));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes)))
    }
}

fn lost(error: &HttpError) -> Heard {
    Heard::Lost { kind: error.kind(), text: chain(error) }
}

/// An error and what it came from. The URL is not part of it: it may carry a
/// signature.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

/// Words as a cause.
#[derive(Debug)]
pub(crate) struct Said(pub(crate) String);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Said {}
