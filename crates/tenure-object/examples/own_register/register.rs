//! A register over a service of one's own: a key-value store that speaks HTTP
//! and knows entity tags.

use async_trait::async_trait;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tenure_cas::{Batches, Expect, Listed, Loaded, Register, Removed, Swapped, Version, Watching};
use tenure_store::{Error, ErrorKind, Result};

#[derive(Debug)]
pub(crate) struct HttpRegister {
    pub(crate) client: Client,
    pub(crate) base: String,
}

#[async_trait]
impl Register for HttpRegister {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let mut request = self.client.get(self.url(key));
        if let Some(known) = known {
            request = request.header("if-none-match", known.as_str());
        }
        let answer = send(request, false).await?;
        match answer.status() {
            StatusCode::NOT_MODIFIED => Ok(Loaded::Unchanged),
            StatusCode::NOT_FOUND => Ok(Loaded::Absent),
            _ => {
                let version = version(&answer)?;
                let bytes = answer.bytes().await.map_err(|error| lost(error, false))?.into();
                Ok(Loaded::Found { bytes, version })
            }
        }
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let request = self.client.put(self.url(key)).body(bytes);
        let request = match &expect {
            Expect::Absent => request.header("if-none-match", "*"),
            Expect::Version(seen) => request.header("if-match", seen.as_str()),
        };
        let answer = send(request, true).await?;
        match answer.status() {
            StatusCode::PRECONDITION_FAILED => Ok(Swapped::Conflict),
            _ => version(&answer).map(Swapped::Stored).map_err(Error::maybe_applied),
        }
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let request = self.client.delete(self.url(key)).header("if-match", expect.as_str());
        match send(request, true).await?.status() {
            StatusCode::PRECONDITION_FAILED => Ok(Removed::Conflict),
            _ => Ok(Removed::Gone),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let request = self.client.get(format!("{}?prefix={prefix}", self.base));
        let text = send(request, false).await?.text().await.map_err(|error| lost(error, false))?;
        let listed = |key: &str| Listed { key: key.into(), version: None, bytes: None };
        Ok(text.lines().map(listed).collect())
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

impl HttpRegister {
    fn url(&self, key: &str) -> String {
        format!("{}/{key}", self.base)
    }
}

/// The whole duty of a register is in here: an answer is an answer, a refusal
/// changed nothing, and of anything else a write may have been applied.
async fn send(request: RequestBuilder, writes: bool) -> Result<Response> {
    let answer = request.send().await.map_err(|error| lost(error, writes))?;
    let fine = answer.status().is_success() || matches!(answer.status().as_u16(), 304 | 404 | 412);
    if fine {
        return Ok(answer);
    }
    let error = Error::new(ErrorKind::Busy, format!("the service said {}", answer.status()));
    let unclear = writes && answer.status().is_server_error();
    Err(if unclear { error.maybe_applied() } else { error })
}

fn lost(error: reqwest::Error, writes: bool) -> Error {
    let never_sent = error.is_connect();
    let said = Error::new(ErrorKind::Unreachable, "the service did not answer").caused_by(error);
    if writes && !never_sent { said.maybe_applied() } else { said }
}

fn version(answer: &Response) -> Result<Version> {
    let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok());
    tag.map(Version::new).ok_or_else(|| Error::new(ErrorKind::Internal, "there is no etag"))
}
