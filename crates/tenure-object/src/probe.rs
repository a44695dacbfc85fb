//! The probe: whether a bucket does what the protocol rests on.
//!
//! A service that takes a conditional write and ignores the condition answers
//! 200 to every member, and every member leads. So each opening tries it out, on an
//! object of its own with a random name below `<prefix>/probe/`, and removes it.
//! No other process ever has that name: any number of processes may probe at once. A
//! process that dies in the middle leaves one object of a few bytes, which may be
//! deleted at any time.
//!
//! In five round trips it finds out: a bucket that is not there; permissions that
//! are missing (to read, write, remove, list, and to be told that something is
//! *not* there); ignored conditions of creating and of replacing; a version of a
//! write that is not the version of a read; and whether removals are conditional,
//! without which they are done another way (`tombstones`).

use std::sync::Arc;

use tenure_cas::{Expect, Loaded, Register, Removed, Swapped, Version};

use tenure_store::{Error, ErrorKind, Result};

use crate::cloud::Cloud;

/// What was found out about a bucket that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// It removes by version.
    pub(crate) conditional_removal: bool,
}

/// Tries the register out, or says why it cannot be used.
pub(crate) async fn probe(
    register: &Arc<dyn Register>,
    cloud: Cloud,
    bucket: &str,
    prefix: &str,
) -> Result<Found> {
    let prefix = prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    let key = format!("{prefix}{slash}probe/{}", random()?);
    let probe = Probe { register, cloud, bucket, key };
    let found = probe.run().await;
    if let Err(error) = &found
        && (error.kind() != ErrorKind::Unreachable || error.may_have_applied())
    {
        // A service that cannot be reached has nothing to remove.
        probe.clean().await;
    }
    found
}

struct Probe<'p> {
    register: &'p Arc<dyn Register>,
    cloud: Cloud,
    bucket: &'p str,
    key: String,
}

impl Probe<'_> {
    async fn run(&self) -> Result<Found> {
        let absent = format!("{}-absent", self.key);
        let (looked, made) =
            tokio::join!(self.register.load(&absent, None), self.write(Expect::Absent, 1));
        let first = match made? {
            Swapped::Stored(version) => version,
            Swapped::Conflict => {
                return Err(self.refuse("it says that an object with a new random name exists"));
            }
        };
        match looked? {
            Loaded::Absent => {}
            _ => return Err(self.refuse("it finds an object that was never written")),
        }
        self.conditions_hold(&first).await?;
        let second = self.replace_and_list(&first).await?;
        self.removal(&second).await
    }

    /// Two writes that must not happen, and a look that must move nothing.
    async fn conditions_hold(&self, first: &Version) -> Result<()> {
        let (create, replace, look) = tokio::join!(
            self.write(Expect::Absent, 2),
            self.write(Expect::Version(self.cloud.never()), 3),
            self.register.load(&self.key, Some(first)),
        );
        if create? != Swapped::Conflict {
            return Err(self.refuse(
                "it stored an object that may only be created where there was one already",
            ));
        }
        if replace? != Swapped::Conflict {
            return Err(self.refuse("it replaced an object of one version in place of another"));
        }
        match look? {
            Loaded::Unchanged => Ok(()),
            _ => {
                Err(self.refuse("the version it gives to a write is not the one it gives to reads"))
            }
        }
    }

    async fn replace_and_list(&self, first: &Version) -> Result<Version> {
        let (replaced, listed) = tokio::join!(
            self.write(Expect::Version(first.clone()), 4),
            self.register.list(&self.key)
        );
        let Swapped::Stored(second) = replaced? else {
            return Err(self.refuse("it does not replace an object of the version it gave itself"));
        };
        if second == *first {
            return Err(self.refuse("it gives two contents one version"));
        }
        if !listed?.iter().any(|object| object.key == self.key) {
            return Err(self.refuse("a listing leaves out an object that was written before"));
        }
        Ok(second)
    }

    async fn removal(&self, second: &Version) -> Result<Found> {
        let conditional_removal = match self.register.remove(&self.key, &self.cloud.never()).await {
            Ok(Removed::Conflict) => true,
            Ok(Removed::Gone) => false,
            Err(error) if error.kind() == ErrorKind::Invalid => false,
            Err(error) => return Err(error),
        };
        if conditional_removal && self.register.remove(&self.key, second).await? != Removed::Gone {
            return Err(self.refuse("it does not remove an object of the version it gave itself"));
        }
        Ok(Found { conditional_removal })
    }

    async fn write(&self, expect: Expect, step: u8) -> Result<Swapped> {
        let text = "an object of Tenure's probe; it may be deleted";
        let bytes = format!("{{\"about\":\"{text}\",\"step\":{step}}}").into_bytes();
        self.register.swap(&self.key, expect, bytes).await
    }

    /// Takes the object away again, if that can be done.
    async fn clean(&self) {
        if let Ok(Loaded::Found { version, .. }) = self.register.load(&self.key, None).await {
            // What failed is told already.
            let _ = self.register.remove(&self.key, &version).await;
        }
    }

    fn refuse(&self, what: &str) -> Error {
        let word = self.cloud.bucket();
        let service = self.cloud.service();
        let text = format!(
            "the {word} {:?} cannot hold elections: {what}; on it, several members would lead at \
             once",
            self.bucket
        );
        Error::new(ErrorKind::Invalid, text).remedy(format!(
            "use {service} itself, or a server with conditional writes (If-Match and \
             If-None-Match on PUT; ifGenerationMatch for Google's interface); \
             docs/backends/object.md names some"
        ))
    }
}

fn random() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Internal, "the system gives no random numbers").caused_by(error)
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
