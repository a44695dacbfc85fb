//! A register over `object_store`: S3 and Azure.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::Request;
use object_store::client::HttpRequestBody;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tenure_cas::{
    Batches, Expect, Listed, Loaded, MAX_RECORD, Register, Removed, Swapped, Version, Watching,
};
use tenure_store::{Error, ErrorKind, Result};

use crate::answer::{Asked, Question, Verdict};
use crate::cloud::Cloud;
use crate::http::{Note, Wire, chain};
use crate::names::{key_of, listed_from, name_of};

/// Makes the request that removes one object of one version, signed. That is
/// the one thing `object_store` has no word for.
#[async_trait]
pub(crate) trait Eraser: fmt::Debug + Send + Sync {
    /// Fails with the reason why it cannot be sent.
    async fn request(
        &self,
        key: &Path,
        version: &Version,
    ) -> Result<Request<HttpRequestBody>, String>;
}

/// A bucket as a register.
pub(crate) struct Objects {
    pub(crate) cloud: Cloud,
    pub(crate) bucket: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) pages: Arc<dyn PaginatedListStore>,
    pub(crate) eraser: Box<dyn Eraser>,
    pub(crate) wire: Wire,
}

impl Objects {
    fn question<'q>(&'q self, asked: Asked, key: &'q str) -> Question<'q> {
        Question { cloud: self.cloud, bucket: &self.bucket, asked, key }
    }

    async fn put(&self, key: &str, mode: PutMode, asked: Asked, bytes: Vec<u8>) -> Result<Swapped> {
        let question = self.question(asked, key);
        let note = Note::default();
        let options = PutOptions {
            mode,
            // For people who look with the cloud's console, and for caches in
            // between, which must have nothing of it.
            attributes: Attributes::from_iter([
                (Attribute::ContentType, "application/json"),
                (Attribute::CacheControl, "no-store"),
            ]),
            extensions: note.extensions(),
            ..PutOptions::default()
        };
        let put = self.store.put_opts(&path(key)?, PutPayload::from(bytes), options).await;
        match put {
            Ok(result) => match result.e_tag {
                Some(tag) => Ok(Swapped::Stored(version(&tag))),
                None => Err(question.unreadable("there is no ETag in it")),
            },
            Err(error) => match question.judge(note.heard(), &chain(&error)) {
                Verdict::Conflict => Ok(Swapped::Conflict),
                Verdict::Failed(error) => Err(error),
                odd => Err(question.unreadable(&format!("{odd:?}"))),
            },
        }
    }
}

#[async_trait]
impl Register for Objects {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        let question = self.question(Asked::Load, key);
        let note = Note::default();
        let options = GetOptions {
            if_none_match: known.map(|version| version.as_str().to_owned()),
            extensions: note.extensions(),
            ..GetOptions::default()
        };
        let found = match self.store.get_opts(&path(key)?, options).await {
            Ok(found) => found,
            Err(error) => {
                return match question.judge(note.heard(), &chain(&error)) {
                    Verdict::Unchanged => Ok(Loaded::Unchanged),
                    Verdict::Absent => Ok(Loaded::Absent),
                    Verdict::Failed(error) => Err(error),
                    odd => Err(question.unreadable(&format!("{odd:?}"))),
                };
            }
        };
        let Some(tag) = found.meta.e_tag.clone() else {
            return Err(question.unreadable("there is no ETag in it"));
        };
        if found.meta.size > MAX_RECORD as u64 {
            return Err(too_large(key, found.meta.size));
        }
        let bytes =
            found.bytes().await.map_err(|error| question.unreadable(&chain(&error)))?.into();
        Ok(Loaded::Found { bytes, version: version(&tag) })
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        match expect {
            Expect::Absent => self.put(key, PutMode::Create, Asked::Create, bytes).await,
            Expect::Version(seen) => {
                let e_tag = Some(seen.as_str().to_owned());
                let mode = PutMode::Update(UpdateVersion { e_tag, version: None });
                self.put(key, mode, Asked::Update, bytes).await
            }
        }
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let question = self.question(Asked::Remove, key);
        let sent = match self.eraser.request(&path(key)?, expect).await {
            Ok(request) => self.wire.send(request).await.map(drop).map_err(Some),
            Err(why) => return Err(failure(question.judge(None, &why), &question)),
        };
        let Err(heard) = sent else { return Ok(Removed::Gone) };
        match question.judge(heard, "") {
            Verdict::Absent => Ok(Removed::Gone),
            // Some call an object that is not there a failed condition.
            Verdict::Conflict => match self.load(key, None).await? {
                Loaded::Absent => Ok(Removed::Gone),
                _ => Ok(Removed::Conflict),
            },
            other => Err(failure(other, &question)),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let question = self.question(Asked::List, prefix);
        let from = listed_from(prefix)?;
        let mut listed = Vec::new();
        let mut page_token = None;
        loop {
            let note = Note::default();
            let options = PaginatedListOptions {
                page_token,
                extensions: note.extensions(),
                ..PaginatedListOptions::default()
            };
            let page = self.pages.list_paginated(Some(&from), options).await;
            let page = page.map_err(|error| {
                failure(question.judge(note.heard(), &chain(&error)), &question)
            })?;
            // Empty objects are tombstones (see `tombstones`), or the folders that
            // consoles make.
            let objects = page.result.objects.into_iter().filter(|object| object.size > 0);
            listed.extend(objects.filter_map(|object| {
                let key = key_of(object.location.as_ref())?;
                let version = object.e_tag.as_deref().map(version);
                key.starts_with(prefix).then_some(Listed { key, version, bytes: None })
            }));
            page_token = page.page_token;
            if page_token.is_none() {
                return Ok(listed);
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

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("cloud", &self.cloud)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

/// Azure writes tags with quotes in headers and without in listings.
fn version(tag: &str) -> Version {
    if tag.contains('"') { Version::new(tag) } else { Version::new(format!("\"{tag}\"")) }
}

fn path(key: &str) -> Result<Path> {
    Path::parse(name_of(key)?).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("{key:?} cannot be an object's name"))
            .caused_by(error)
    })
}

fn failure(verdict: Verdict, question: &Question<'_>) -> Error {
    match verdict {
        Verdict::Failed(error) => error,
        odd => question.unreadable(&format!("{odd:?}")),
    }
}

/// Reading it would be paid for, and it cannot be a record.
pub(crate) fn too_large(key: &str, size: u64) -> Error {
    let text =
        format!("the object {key:?} is {size} bytes long; a record has at most {MAX_RECORD}");
    Error::new(ErrorKind::Foreign, text).remedy("another program wrote it: choose another prefix")
}
