//! Installing what is missing, where we may: as root on Debian and its kin.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::{Doing, Failure, Outcome};

/// Installs Debian packages, or says what to install by hand.
pub(crate) fn packages(packages: &[&str]) -> Outcome {
    let list = packages.join(" ");
    let debian = Path::new("/etc/debian_version").exists();
    if let Some(refusal) = refusal(&list, debian, rustix::process::geteuid().is_root()) {
        return Err(Failure::new(refusal));
    }
    println!("    installing {list}");
    apt(&["update", "-qq"])?;
    let mut line = vec!["install", "-qq", "--yes", "--no-install-recommends"];
    line.extend(packages);
    apt(&line)
}

fn refusal(list: &str, debian: bool, root: bool) -> Option<String> {
    match (debian, root) {
        (true, true) => None,
        (true, false) => Some(format!(
            "{list} is not installed, and only root can install it: run `sudo apt install {list}`"
        )),
        (false, _) => Some(format!(
            "{list} is not installed: install it the way this system does, then run this again"
        )),
    }
}

fn apt(args: &[&str]) -> Outcome {
    let shown = format!("apt-get {}", args.join(" "));
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .doing(|| format!("run {shown}"))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{shown} failed: {status}; its reason is shown above")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where we may not install, the message says what to do.
    #[test]
    fn what_cannot_be_installed_is_asked_for_by_name() {
        assert_eq!(refusal("postgresql", true, true), None);
        let user = refusal("postgresql", true, false).unwrap();
        assert!(user.contains("sudo apt install postgresql"), "{user}");
        let other = refusal("postgresql", false, true).unwrap();
        assert!(other.contains("postgresql is not installed"), "{other}");
    }
}
