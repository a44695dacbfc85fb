//! How records are written: self-describing JSON, one record for each election and each
//! name, two for each member, and one for the numbers of names.
//!
//! Every record says which format it is of, and fields that this version does
//! not know are kept when it is rewritten. What cannot be read is
//! [`Foreign`](tenure_store::ErrorKind::Foreign), never guessed at.

pub(crate) mod candidacies;
pub(crate) mod election;
pub(crate) mod format;
pub(crate) mod history;
pub(crate) mod member;
pub(crate) mod name;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_core::Mono;

use crate::keys::names;
use crate::memory::Memory;
use crate::seen::{Rhythm, Seen, Table};
use tenure_store::{Error, ErrorKind, Result};

/// The format this version writes, and the newest it reads.
pub(crate) const FORMAT: u32 = 1;

/// The largest record, in bytes.
pub const MAX_RECORD: usize = 1 << 20;

/// A record of any kind.
pub(crate) trait Record: Clone + Serialize + DeserializeOwned + Send + Sync {
    /// What of it is counted from when it was first seen: a member's sign of
    /// life, changed by every heartbeat and by nothing that another writes;
    /// an election's vacancy.
    fn stamp(&self) -> Stamp;

    /// The signs of life to count from, this one among them: it was seen at
    /// `now`, and the others with what is `known`. Only a heartbeat is one.
    fn sights(&self, _known: Option<&Seen<Self>>, _now: Mono) -> Vec<(Mono, Duration)> {
        Vec::new()
    }

    /// The latest moment, on this observer's clock, at which what the stamp stands
    /// for can have begun, by those signs; `None` if nothing is known of it but
    /// when it is first seen.
    fn begun_by(&self, _sights: &[(Mono, Duration)], _drift_ppm: u32) -> Option<Mono> {
        None
    }

    /// See [`Seen::rhythm`], for a stamp that a look `sent` then was the first to
    /// find.
    fn rhythm(&self, _known: &Seen<Self>, _sent: Mono, _drift_ppm: u32) -> Option<Rhythm> {
        None
    }

    /// The name it goes by, which its key must end with.
    fn name(&self) -> &str;

    /// Counts the writes, so that no content ever comes back.
    fn revision(&mut self) -> &mut u64;

    /// Of which life it is, and a count that rises with its writes: of two records of one
    /// cell and life the one with the lower count is the older.
    fn age(&self) -> Age;

    /// Where an observer keeps the records of this kind that it has seen.
    fn table(memory: &mut Memory) -> &mut Table<Self>;

    /// Notes what else is to be remembered of the record.
    fn remember(&self, key: &str, memory: &mut Memory, now: Mono);
}

/// See [`Record::stamp`].
pub(crate) type Stamp = (u128, u64);

/// See [`Record::age`].
pub(crate) type Age = (u128, u64);

/// The bytes of a record.
pub(crate) fn encode<R: Record>(key: &str, record: &R) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(record).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("writing the record {key} failed"))
            .caused_by(error)
            .remedy("report this as a defect")
    })?;
    if bytes.len() > MAX_RECORD {
        let size = bytes.len();
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("the record {key} would be {size} bytes: the limit is {MAX_RECORD} bytes"),
        )
        .remedy("stand for fewer elections, or publish less metadata"));
    }
    Ok(bytes)
}

/// Only what tells whether the rest can be read.
#[derive(Deserialize)]
struct Header {
    tenure: u32,
}

/// The record in these bytes.
pub(crate) fn decode<R: Record>(key: &str, bytes: &[u8]) -> Result<R> {
    let foreign = |what: String| {
        Error::new(ErrorKind::Foreign, what).remedy(
            "use another prefix, or repair the record by hand: its term number must not go back",
        )
    };
    if bytes.len() > MAX_RECORD {
        let size = bytes.len();
        return Err(foreign(format!("the record {key} is {size} bytes: no record of ours")));
    }
    let header: Header = serde_json::from_slice(bytes).map_err(|error| {
        foreign(format!("the record {key} is damaged or not of Tenure")).caused_by(error)
    })?;
    if header.tenure > FORMAT {
        let found = header.tenure;
        let what =
            format!("the record {key} is of format {found}, and this version reads up to {FORMAT}");
        return Err(Error::new(ErrorKind::Foreign, what).remedy("upgrade this program"));
    }
    let record: R = serde_json::from_slice(bytes)
        .map_err(|error| foreign(format!("the record {key} is damaged")).caused_by(error))?;
    if !names(key, record.name()) {
        let name = record.name();
        return Err(foreign(format!("the record {key} was copied here: it is of {name:?}")));
    }
    Ok(record)
}

#[cfg(test)]
mod tests;
