//! etcd, beside which names are measured.

use std::process::{Command, Stdio};

use super::{install, postgres_programs};
use crate::failure::Outcome;

/// Finds PostgreSQL's programs, and installs etcd if it can be had: without it the benchmark
/// says which lines it does not measure.
pub(crate) fn programs() -> Outcome<Vec<(String, String)>> {
    let found = postgres_programs()?;
    if !is_here()
        && let Err(failure) = install(&["etcd-server"])
    {
        println!("    without etcd: {failure}");
    }
    Ok(found)
}

fn is_here() -> bool {
    let mut asked = Command::new("etcd");
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}
