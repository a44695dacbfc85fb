//! What a service's answer means: lost, try again, or may have been applied.
//!
//! | answer | to a look | to a write or a removal |
//! |---|---|---|
//! | 304 | unchanged | – |
//! | 404, the object | absent | conflict (removal: gone) |
//! | 404, the bucket | denied | denied, not applied |
//! | 412 | – | conflict |
//! | 412 of a blob lease | – | denied, not applied |
//! | 409 (S3: a concurrent conditional write; Azure: BlobAlreadyExists) | – | conflict |
//! | 409, Azure, anything else | – | busy, not applied |
//! | 429, SlowDown | busy | busy, not applied |
//! | 401, 403, an expired token | denied | denied, not applied |
//! | 301, 307 | invalid: another region | invalid, not applied |
//! | 400, 405, 413, 501 | invalid | invalid, not applied |
//! | 408, 500, 502, 503, 504 | busy or unreachable | the same, **may have been applied** |
//! | refused connection | unreachable | unreachable, not applied |
//! | cut connection, timeout | unreachable, timeout | the same, **may have been applied** |
//! | never sent (no credential) | denied | denied, not applied |
//! | anything else | internal | internal, **may have been applied** |
//!
//! A 409 of S3 does not say that the version was another, only that another process
//! wrote at that moment. It counts as a conflict all the same: nothing was
//! applied, and the loser looks.

use object_store::client::HttpErrorKind;
use tenure_store::{Error, ErrorKind};

use crate::cloud::Cloud;
use crate::http::Said;

/// For answers after which the caller's next attempt may succeed.
const REPEATED: &str = "the request is repeated";

/// What came back from one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// An answer with a status.
    Answer(Answer),
    /// None: how the connection failed.
    Lost { kind: HttpErrorKind, text: String },
}

/// A status, and the service's own word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `NoSuchBucket`, `ConditionNotMet`, `rateLimitExceeded` …; empty if none.
    pub(crate) code: String,
    /// The service's text for people; empty if none.
    pub(crate) message: String,
}

impl Answer {
    pub(crate) fn bare(status: u16) -> Self {
        Self { status, code: String::new(), message: String::new() }
    }

    /// Reads an error's body: XML of S3 and Azure, or JSON of Google.
    pub(crate) fn read(status: u16, body: &str) -> Self {
        if let Some(json) = GoogleError::read(body) {
            return Self { status, code: json.0, message: json.1 };
        }
        let part = |tag: &str| between(body, tag).unwrap_or_default();
        Self { status, code: short(&part("Code")), message: short(&part("Message")) }
    }
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Load,
    Create,
    Update,
    Remove,
    List,
}

impl Asked {
    fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Remove)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Load => "reading",
            Self::Create => "creating",
            Self::Update => "replacing",
            Self::Remove => "removing",
            Self::List => "listing",
        }
    }
}

/// An answer that is none of the usual success.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It has the version that was known.
    Unchanged,
    /// There is no such object.
    Absent,
    /// The object was not as expected; nothing was changed.
    Conflict,
    /// It failed.
    Failed(Error),
}

/// What was asked of what, for reading an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'q> {
    pub(crate) cloud: Cloud,
    pub(crate) bucket: &'q str,
    pub(crate) asked: Asked,
    pub(crate) key: &'q str,
}

impl Question<'_> {
    /// Reads what came back; `None` if nothing was sent, for the reason given.
    pub(crate) fn judge(&self, heard: Option<Heard>, why: &str) -> Verdict {
        match heard {
            None => Verdict::Failed(self.unsent(why)),
            Some(Heard::Lost { kind, text }) => Verdict::Failed(self.lost(kind, text)),
            Some(Heard::Answer(answer)) => self.answered(&answer, why),
        }
    }

    /// The service said yes and then something that cannot be read.
    pub(crate) fn unreadable(&self, why: &str) -> Error {
        self.maybe(
            Error::new(
                ErrorKind::Internal,
                format!("{} gave an answer that cannot be read", self.doing()),
            )
            .caused_by(Said(short(why)))
            .remedy("check that the endpoint is the service itself, and not a proxy's page"),
        )
    }

    fn answered(&self, answer: &Answer, why: &str) -> Verdict {
        let code = answer.code.as_str();
        match answer.status {
            200..=299 => Verdict::Failed(self.unreadable(why)),
            304 => Verdict::Unchanged,
            404 if bucket_is_missing(self.cloud, answer) => Verdict::Failed(self.error(
                ErrorKind::Denied,
                answer,
                &format!(
                    "create the {} {:?}, or name another in the URL",
                    self.cloud.bucket(),
                    self.bucket
                ),
            )),
            404 => match self.asked {
                Asked::Load | Asked::Remove => Verdict::Absent,
                Asked::Update => Verdict::Conflict,
                Asked::Create | Asked::List => Verdict::Failed(self.error(
                    ErrorKind::Denied,
                    answer,
                    &format!(
                        "check that the {} exists and that the endpoint is right",
                        self.cloud.bucket()
                    ),
                )),
            },
            412 if code.starts_with("LeaseId") || code.starts_with("LeaseNotPresent") => {
                Verdict::Failed(self.error(
                    ErrorKind::Denied,
                    answer,
                    "the blob has a lease: break it. Tenure takes none",
                ))
            }
            412 if self.asked.writes() => Verdict::Conflict,
            409 if self.asked.writes() && self.is_a_lost_race(code) => Verdict::Conflict,
            _ => Verdict::Failed(self.failed(answer)),
        }
    }

    /// Azure uses 409 for a dozen other things; S3 on an object only for this.
    fn is_a_lost_race(&self, code: &str) -> bool {
        self.cloud != Cloud::Azure || code == "BlobAlreadyExists"
    }

    fn failed(&self, answer: &Answer) -> Error {
        let code = answer.code.as_str();
        let (kind, remedy) = match (answer.status, code) {
            (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => (
                ErrorKind::Denied,
                "the credential has expired: renew it. It is read anew with each request where it \
                 comes from a role or a file",
            ),
            (_, "RequestTimeTooSkewed") => (
                ErrorKind::Denied,
                "this host's wall clock is wrong: set it. Signatures carry the time; elections do \
                 not use it",
            ),
            (401 | 403, _) => (
                ErrorKind::Denied,
                "check the credentials, and that they may read, write, delete and list here: \
                 docs/backends/object.md has the list",
            ),
            (429, _) | (_, "SlowDown" | "SlowDownWrite" | "SlowDownRead" | "rateLimitExceeded") => {
                (
                    ErrorKind::Busy,
                    "the service throttles: the request is repeated more slowly. Choose a longer \
                     ttl, or spread members over prefixes",
                )
            }
            (301 | 302 | 307 | 308, _) => (
                ErrorKind::Invalid,
                "the bucket is in another region or at another endpoint: name it in the URL by \
                 region= or endpoint=",
            ),
            (409, _) => (ErrorKind::Busy, REPEATED),
            (501 | 405, _) => (
                ErrorKind::Invalid,
                "the service does not know this request: use one that has conditional writes",
            ),
            (400 | 411 | 413 | 414, _) => {
                (ErrorKind::Invalid, "check the endpoint, the region and the name in the URL")
            }
            (408, _) => {
                return self.maybe(self.error(ErrorKind::Timeout, answer, REPEATED));
            }
            (500..=599, _) => {
                return self.maybe(self.error(ErrorKind::Unreachable, answer, REPEATED));
            }
            _ => {
                return self.maybe(self.error(ErrorKind::Internal, answer, "report this answer"));
            }
        };
        self.error(kind, answer, remedy)
    }

    fn lost(&self, kind: HttpErrorKind, text: String) -> Error {
        let (kind, sent, what) = match kind {
            HttpErrorKind::Connect => (ErrorKind::Unreachable, false, "could not connect"),
            HttpErrorKind::Timeout => (ErrorKind::Timeout, true, "was not answered in time"),
            _ => (ErrorKind::Unreachable, true, "lost its connection"),
        };
        let error = Error::new(kind, format!("{} {what}", self.doing()))
            .caused_by(Said(short(&text)))
            .remedy("check the endpoint and the network");
        if sent { self.maybe(error) } else { error }
    }

    fn unsent(&self, why: &str) -> Error {
        Error::new(ErrorKind::Denied, format!("{} could not be asked for", self.doing()))
            .caused_by(Said(short(why)))
            .remedy(match self.cloud {
                Cloud::S3 => {
                    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is given"
                }
                Cloud::Gcs => {
                    "set GOOGLE_APPLICATION_CREDENTIALS, or run where a service account is given"
                }
                Cloud::Azure => {
                    "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or run where an \
                     identity is given"
                }
            })
    }

    fn error(&self, kind: ErrorKind, answer: &Answer, remedy: &str) -> Error {
        let mut said = format!("status {}", answer.status);
        for part in [&answer.code, &answer.message] {
            if !part.is_empty() {
                said = format!("{said}, {part}");
            }
        }
        Error::new(kind, format!("{} was refused", self.doing()))
            .caused_by(Said(said))
            .remedy(remedy)
    }

    fn doing(&self) -> String {
        let Self { cloud, bucket, asked, key } = self;
        format!(
            "{} {key:?} in the {} {bucket:?} of {}",
            asked.words(),
            cloud.bucket(),
            cloud.service()
        )
    }

    fn maybe(&self, error: Error) -> Error {
        if self.asked.writes() { error.maybe_applied() } else { error }
    }
}

fn bucket_is_missing(cloud: Cloud, answer: &Answer) -> bool {
    match cloud {
        Cloud::S3 => answer.code == "NoSuchBucket",
        Cloud::Azure => answer.code == "ContainerNotFound" || answer.code == "ResourceNotFound",
        // Google has one code for both and tells them apart in the text.
        Cloud::Gcs => answer.message.to_lowercase().contains("bucket"),
    }
}

struct GoogleError(String, String);

impl GoogleError {
    fn read(body: &str) -> Option<Self> {
        let json: serde_json::Value = serde_json::from_str(body).ok()?;
        let error = json.get("error")?;
        let text = |value: &serde_json::Value| value.as_str().map(short).unwrap_or_default();
        let reason = error.pointer("/errors/0/reason").map(text).unwrap_or_default();
        Some(Self(reason, error.get("message").map(text).unwrap_or_default()))
    }
}

/// What stands between a tag and its end. Error texts are flat: no parser is
/// needed to read one word, and none can choke on what a proxy sends instead.
fn between(body: &str, tag: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{tag}>"))?;
    let (text, _) = rest.split_once(&format!("</{tag}>"))?;
    Some(text.trim().to_owned())
}

/// The first line, cut to what fits into a message, without what would move a
/// terminal's cursor.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests;
