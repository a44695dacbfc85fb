//! What the file says of itself, for the doctor.
//!
//! The note beside the file is compared with the file as it was *after* the note was read. A
//! note is written after its commit: one that is read later may be of a commit that the look
//! at the file came too early for, and the file would seem to be an older copy.

use std::collections::BTreeSet;

use rusqlite::params;
use tenure_core::{Examined, Finding, Incarnation};
use tenure_rules::ReadRows;

use crate::era::Beside;
use crate::error::Outcome;
use crate::rows::incarnation;
use crate::schema;
use crate::txn::Txn;

/// Why notifications may fail to arrive.
const LATE: &str = "the kernel gives this process no notifications: raise \
                    fs.inotify.max_user_instances and fs.inotify.max_user_watches; changes are \
                    still found, later";

/// What the doctor asks for; `beside` was read before this look began.
pub(crate) fn examine(txn: &Txn<'_>, beside: Beside) -> Outcome<Examined> {
    let mut findings = vec![Finding::schema(schema::VERSION.unsigned_abs())];
    findings.extend(older_copy(txn, beside)?);
    findings.push(void_names(txn)?);
    let era = Some(txn.numbers()?);
    Ok(Examined { era, findings, late_because: Some(LATE) })
}

/// Whether the file was put back and nothing was written to it since (rule M6).
fn older_copy(txn: &Txn<'_>, beside: Beside) -> Outcome<Option<Finding>> {
    let lack = txn.lacks(beside)?;
    if lack.is_none() {
        return Ok(None);
    }
    let found = format!(
        "it is an older copy: the note beside it knows of {} more entries of the journal, {} \
         more changes of names, and numbers up to {}",
        lack.entries, lack.bindings, beside.number
    );
    let remedy = "if it was put back on purpose, there is nothing to do: with the next write, \
                  which is the doctor's own if it may write, the era rises, and numbers go on \
                  above those that are lacking; if it was not, stop every process that uses \
                  it and put the newer file back";
    Ok(Some(Finding::note(Finding::ROLLED_BACK, "file", found, remedy)))
}

/// How many names of this namespace are owned by lives that are over.
fn void_names(txn: &Txn<'_>) -> Outcome<Finding> {
    let now = txn.judge.now;
    let lives: BTreeSet<Incarnation> = txn
        .members()?
        .into_iter()
        .filter(|row| row.is_live(now))
        .map(|row| row.member.incarnation)
        .collect();
    let sql = include_str!("sql/name_owners.sql");
    let owners = txn.all(sql, params![txn.ns], |row| {
        Ok((incarnation(row.get_ref(0)?.as_str().unwrap_or_default())?, row.get::<_, u64>(1)?))
    })?;
    let void = owners.iter().filter(|(life, _)| !lives.contains(life)).map(|(_, names)| names);
    Ok(Finding::void_names(void.sum(), owners.iter().map(|(_, names)| names).sum()))
}
