//! What the doctor found, as `tenure doctor` answers.

use serde::{Deserialize, Serialize};

use crate::Verdict;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// How it is meant.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// The answer of `tenure doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// In the order in which they were looked at.
    pub findings: Vec<Finding>,
}
