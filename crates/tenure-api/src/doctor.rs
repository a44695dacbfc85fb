//! What the doctor found, as `tenure doctor` answers.

use serde::{Deserialize, Serialize};

use crate::Verdict;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A name for scripts, which never changes.
    pub code: String,
    /// What was looked at.
    pub what: String,
    /// How it is meant.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl From<tenure_core::Finding> for Finding {
    fn from(finding: tenure_core::Finding) -> Self {
        Self {
            code: finding.code.into(),
            what: finding.what.into(),
            verdict: finding.verdict.into(),
            found: finding.found,
            remedy: finding.remedy,
        }
    }
}

/// The answer of `tenure doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// In the order in which they were looked at.
    pub findings: Vec<Finding>,
}
