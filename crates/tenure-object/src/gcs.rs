//! Google Cloud Storage over its JSON interface.
//!
//! Why not `object_store`: it writes by the XML interface, which no emulator
//! answers, so that it could only be hoped to work. Why not Google's own crate:
//! it removes and lists by gRPC, which brings some eighty crates more and again
//! nothing to test against. What is needed is four requests; the credentials are
//! `object_store`'s, as for the others.
//!
//! A version is a *generation*: a number that is new with each write. Writes are
//! multipart uploads in one request, because that is the form whose condition
//! emulators judge as the service does.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use object_store::client::HttpRequestBody;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{CredentialProvider, gcp::GcpCredential};
use serde::Deserialize;
use tenure_cas::{
    Batches, Expect, Listed, Loaded, MAX_RECORD, Register, Removed, Swapped, Version, Watching,
};
use tenure_store::{Error, Result};

use crate::answer::{Asked, Heard, Question, Verdict};
use crate::cloud::Cloud;
use crate::http::{Wire, chain};
use crate::names::{key_of, listed_from, name_of};
use crate::objects::too_large;
use crate::options::{BucketOptions, refuse};
use crate::store::{never_again, unbuilt};

const ENDPOINT: &str = "https://storage.googleapis.com";
/// Names an emulator, as Google's own clients have it.
const EMULATOR: &str = "STORAGE_EMULATOR_HOST";
/// Says of which version what was read is.
const GENERATION: &str = "x-goog-generation";

/// A bucket as a register.
pub(crate) struct Bucket {
    bucket: String,
    endpoint: String,
    /// `None` where no credentials are sent.
    credentials: Option<Arc<dyn CredentialProvider<Credential = GcpCredential>>>,
    wire: Wire,
}

impl Bucket {
    /// The bucket that the options name, with credentials from code, the
    /// environment, the well-known file, or the metadata server.
    pub(crate) fn open(options: &BucketOptions, wire: &Wire) -> Result<Self> {
        let endpoint = options.endpoint.clone().or_else(emulator);
        let endpoint = endpoint.unwrap_or_else(|| ENDPOINT.to_owned());
        // A token is as good as a password: none goes over a connection that
        // others can read.
        let credentials = if endpoint.starts_with("http://") {
            None
        } else {
            let mut builder = GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(&options.bucket)
                .with_http_connector(wire.clone())
                .with_retry(never_again());
            for (key, value) in &options.given {
                let known: GoogleConfigKey = key
                    .parse()
                    .map_err(|_| refuse(format!("Google has no setting called {key:?}")))?;
                builder = builder.with_config(known, value);
            }
            let built = builder.build().map_err(|error| unbuilt(Cloud::Gcs, &error))?;
            Some(built.credentials().clone())
        };
        Ok(Self { bucket: options.bucket.clone(), endpoint, credentials, wire: wire.clone() })
    }

    fn question<'q>(&'q self, asked: Asked, key: &'q str) -> Question<'q> {
        Question { cloud: Cloud::Gcs, bucket: &self.bucket, asked, key }
    }

    fn object(&self, key: &str) -> Result<String> {
        let name = escaped(&name_of(key)?);
        Ok(format!("{}/storage/v1/b/{}/o/{name}", self.endpoint, self.bucket))
    }

    /// Sends a request, or says what its failure means.
    async fn send(
        &self,
        question: &Question<'_>,
        method: Method,
        uri: String,
        body: Option<(String, Vec<u8>)>,
    ) -> std::result::Result<(http::response::Parts, Vec<u8>), Verdict> {
        let unsent = |why: &str| question.judge(None, why);
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(credentials) = &self.credentials {
            let credential = credentials.get_credential().await;
            let credential = credential.map_err(|error| unsent(&chain(&error)))?;
            request = request.header(AUTHORIZATION, format!("Bearer {}", credential.bearer));
        }
        let request = match body {
            Some((kind, bytes)) => request.header(CONTENT_TYPE, kind).body(bytes.into()),
            None => request.body(HttpRequestBody::empty()),
        };
        let request = request.map_err(|error| unsent(&error.to_string()))?;
        self.wire.send(request).await.map_err(|heard: Heard| question.judge(Some(heard), ""))
    }
}

#[async_trait]
impl Register for Bucket {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let question = self.question(Asked::Load, key);
        let mut uri = format!("{}?alt=media", self.object(key)?);
        if let Some(known) = known {
            uri = format!("{uri}&ifGenerationNotMatch={}", known.as_str());
        }
        let (parts, bytes) = match self.send(&question, Method::GET, uri, None).await {
            Ok(found) => found,
            Err(Verdict::Absent) => return Ok(Loaded::Absent),
            Err(Verdict::Unchanged) => return Ok(Loaded::Unchanged),
            Err(other) => return Err(failure(other, &question)),
        };
        let generation = parts.headers.get(GENERATION).and_then(|value| value.to_str().ok());
        let Some(version) = generation.and_then(version) else {
            return Err(question.unreadable("there is no generation in it"));
        };
        // Not every service with this interface knows the condition.
        if known == Some(&version) {
            return Ok(Loaded::Unchanged);
        }
        if bytes.len() > MAX_RECORD {
            return Err(too_large(key, bytes.len() as u64));
        }
        Ok(Loaded::Found { bytes, version })
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let (asked, generation) = match &expect {
            Expect::Absent => (Asked::Create, "0"),
            Expect::Version(seen) => (Asked::Update, seen.as_str()),
        };
        let question = self.question(asked, key);
        let name = name_of(key)?;
        let uri = format!(
            "{}/upload/storage/v1/b/{}/o?uploadType=multipart&ifGenerationMatch={generation}\
             &fields=generation&name={}",
            self.endpoint,
            self.bucket,
            escaped(&name)
        );
        let body = multipart(&name, &bytes);
        match self.send(&question, Method::POST, uri, Some(body)).await {
            Ok((_, answer)) => match written(&answer) {
                Ok(version) => Ok(Swapped::Stored(version)),
                Err(why) => Err(question.unreadable(&why)),
            },
            Err(Verdict::Conflict) => Ok(Swapped::Conflict),
            Err(other) => Err(failure(other, &question)),
        }
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let question = self.question(Asked::Remove, key);
        let uri = format!("{}?ifGenerationMatch={}", self.object(key)?, expect.as_str());
        match self.send(&question, Method::DELETE, uri, None).await {
            Ok(_) | Err(Verdict::Absent) => Ok(Removed::Gone),
            Err(Verdict::Conflict) => match self.load(key, None).await? {
                Loaded::Absent => Ok(Removed::Gone),
                _ => Ok(Removed::Conflict),
            },
            Err(other) => Err(failure(other, &question)),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let question = self.question(Asked::List, prefix);
        let from = listed_from(prefix)?;
        let mut listed = Vec::new();
        let mut token = String::new();
        loop {
            let uri = format!(
                "{}/storage/v1/b/{}/o?prefix={}&fields=items(name,generation,size),nextPageToken{token}",
                self.endpoint,
                self.bucket,
                escaped(&from)
            );
            let (_, answer) = self
                .send(&question, Method::GET, uri, None)
                .await
                .map_err(|verdict| failure(verdict, &question))?;
            let (page, next) = page(&answer, prefix).map_err(|why| question.unreadable(&why))?;
            listed.extend(page);
            match next {
                Some(next) => token = format!("&pageToken={}", escaped(&next)),
                None => return Ok(listed),
            }
        }
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("bucket", &self.bucket)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The answer to an upload.
#[derive(Deserialize)]
struct Written {
    generation: String,
}

/// One page of a listing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    items: Vec<Item>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    name: String,
    generation: Option<String>,
    size: Option<String>,
}

/// A generation, as the service writes it: it goes into the URL of the next write,
/// where nothing else may.
fn version(generation: &str) -> Option<Version> {
    let number = !generation.is_empty() && generation.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| Version::new(generation))
}

/// The version that an upload was answered with.
pub(crate) fn written(answer: &[u8]) -> Result<Version, String> {
    let written: Written = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    version(&written.generation).ok_or_else(|| "its generation is no number".to_owned())
}

/// What a page of a listing has below `prefix`, and where the next one begins.
pub(crate) fn page(answer: &[u8], prefix: &str) -> Result<(Vec<Listed>, Option<String>), String> {
    let page: Page = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    // Empty objects are tombstones (see `tombstones`).
    let objects = page.items.into_iter().filter(|item| item.size.as_deref() != Some("0"));
    let listed = objects.filter_map(|item| {
        let key = key_of(&item.name).filter(|key| key.starts_with(prefix))?;
        let version = item.generation.as_deref().and_then(version);
        Some(Listed { key, version, bytes: None })
    });
    Ok((listed.collect(), page.next_page_token.filter(|token| !token.is_empty())))
}

fn emulator() -> Option<String> {
    let host = std::env::var(EMULATOR).ok().filter(|host| !host.is_empty())?;
    let host = host.trim_end_matches('/').to_owned();
    Some(if host.contains("://") { host } else { format!("http://{host}") })
}

fn failure(verdict: Verdict, question: &Question<'_>) -> Error {
    match verdict {
        Verdict::Failed(error) => error,
        odd => question.unreadable(&format!("{odd:?}")),
    }
}

/// Content and what is known of it, in one body. The boundary cannot occur in a
/// record: those are JSON, where a line break inside a string is escaped.
fn multipart(name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    const LINE: &str = "tenure-record-boundary-3f1c9a7e";
    let about = serde_json::json!({
        "name": name, "contentType": "application/json", "cacheControl": "no-store",
    });
    let mut body = format!(
        "--{LINE}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n\
         --{LINE}\r\nContent-Type: application/json\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{LINE}--\r\n").as_bytes());
    (format!("multipart/related; boundary={LINE}"), body)
}

/// A name as one part of a URL.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_the_url() {
        assert_eq!(escaped("a/b=2F_c-d"), "a%2Fb%3D2F_c-d");
        assert_eq!(escaped("ü&?"), "%C3%BC%26%3F");
    }

    #[test]
    fn the_condition_of_a_listing_without_objects_is_no_error() {
        let page: Page = serde_json::from_str("{}").unwrap();
        assert!(page.items.is_empty() && page.next_page_token.is_none());
    }

    /// A token goes nowhere in the clear, and an emulator needs none.
    #[test]
    fn no_credential_is_sent_over_plain_http() {
        let wire =
            Wire::new(std::time::Duration::from_secs(1), &tenure_store::tls::Tls::new()).unwrap();
        let options = BucketOptions::from_url("gs://b?endpoint=http://127.0.0.1:1").unwrap();
        let options = options.with("google_service_account_key", "hunter2");
        let bucket = Bucket::open(&options, &wire).unwrap();
        assert!(bucket.credentials.is_none());
        assert!(!format!("{bucket:?}").contains("hunter2"));
    }
}
