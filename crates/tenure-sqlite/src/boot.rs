//! Which clock a row's instants were read from.

use std::fmt;
use std::fs;
use std::sync::Arc;

use tenure_store::{Error, ErrorKind, Result};

use crate::limits;

/// Names one running kernel and one view of its clock.
///
/// `CLOCK_BOOTTIME` starts anew with every boot, differs from kernel to kernel,
/// and is offset between time namespaces. Two instants may be compared only if
/// they were read under the same key; a row under any other key is judged by
/// how long it stays unchanged on this process's own clock.
///
/// ```
/// use tenure_sqlite::BootKey;
/// assert_eq!(BootKey::of_this_process().unwrap(), BootKey::of_this_process().unwrap());
/// assert_ne!(BootKey::named("first boot"), BootKey::named("second boot"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BootKey(Arc<str>);

impl BootKey {
    /// The key of the kernel and time namespace this process runs in.
    pub fn of_this_process() -> Result<Self> {
        const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
        let boot = fs::read_to_string(BOOT_ID).map_err(|error| {
            let remedy = match limits::is_limit(&error) {
                true => limits::REMEDY,
                false => "mount /proc: without it one boot cannot be told from the next",
            };
            Error::new(ErrorKind::Invalid, format!("reading {BOOT_ID} failed"))
                .caused_by(error)
                .remedy(remedy)
        })?;
        // Kernels before 5.6 have no time namespaces: then there is one view.
        let view = fs::read_link("/proc/self/ns/time")
            .map_or_else(|_| "time:one".into(), |link| link.to_string_lossy().into_owned());
        Ok(Self(format!("{} {view}", boot.trim()).into()))
    }

    /// A key of this name, for tests that play a reboot or a second host.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
