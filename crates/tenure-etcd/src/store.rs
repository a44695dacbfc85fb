//! Opening a prefix of a cluster as a store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenure_cas::{CasOptions, CasStore, Register, Repeats, Retrying};
use tenure_core::{Namespace, Settings, Term};
use tenure_store::{BootClock, Clock, Error, ErrorKind, Result, SharedStore};

use crate::fence::Fence;
use crate::messages::{Status, key, lists};
use crate::options::EtcdOptions;
use crate::register::{Etcd, MOST};
use crate::wire::{Effect, Wire};

/// The oldest release whose JSON interface is the one that is spoken here.
const OLDEST: (u32, u32) = (3, 4);
/// How many keys below the prefix are looked at when it is opened.
const LOOKED_AT: usize = 64;

/// A prefix of an etcd cluster as a store: [`CasStore`] over its cells.
///
/// ```no_run
/// use tenure_etcd::{EtcdOptions, EtcdStore};
/// # async fn example() -> Result<(), tenure_store::Error> {
/// let options = EtcdOptions::from_url("etcd://10.0.0.1,10.0.0.2,10.0.0.3/elections")?;
/// let store = EtcdStore::open(options).await?.shared();
/// assert_eq!(store.capabilities().name, "etcd");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EtcdStore {
    store: Arc<CasStore>,
    register: Arc<dyn Register>,
    prefix: String,
}

impl EtcdStore {
    /// Opens a prefix. Fails with [`Invalid`](ErrorKind::Invalid) if the server is too old,
    /// with [`Denied`](ErrorKind::Denied) if something is not allowed, and with
    /// [`Foreign`](ErrorKind::Foreign) if another program keeps its keys there.
    pub async fn open(options: EtcdOptions) -> Result<Self> {
        Self::open_with(options, Arc::new(BootClock)).await
    }

    /// The same, on a clock of your own.
    pub async fn open_with(options: EtcdOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let options = options.checked()?;
        if options.sends_password_in_clear() {
            tracing::warn!(
                target: "tenure",
                "the password for etcd is sent without TLS: write tls=yes into its URL"
            );
        }
        let wire = Arc::new(Wire::new(&options)?);
        let etcd = Etcd(wire.clone());
        let status: Status = wire.ask("/v3/maintenance/status", &json!({}), Effect::Reads).await?;
        check_version(&status.version)?;
        check_prefix(&etcd, options.prefix()).await?;
        let register: Arc<dyn Register> = Arc::new(etcd);
        // A node that dies takes some hundred milliseconds to be replaced: not to be asked
        // at once again, nor as seldom as a bucket that is paid for by the request.
        let gap = Duration::from_millis(20);
        let repeats = Repeats { gap, within: options.timeout() };
        let steady = Arc::new(Retrying::new(register.clone(), clock.clone(), repeats));
        let store = CasStore::new(steady, clock, cas_options(&options))?;
        let prefix = options.prefix().to_owned();
        Ok(Self { store: Arc::new(store), register, prefix })
    }

    /// The store, for a client.
    #[must_use]
    pub fn shared(self) -> SharedStore {
        self.store
    }

    /// The cluster's cells, each of which can be compared and swapped: for records of your
    /// own beside Tenure's.
    #[must_use]
    pub fn register(&self) -> Arc<dyn Register> {
        self.register.clone()
    }

    /// What a transaction of your own compares, so that it fails once a newer term than this
    /// was won.
    #[must_use]
    pub fn fence(&self, namespace: &Namespace, term: &Term) -> Fence {
        Fence::new(&self.prefix, namespace, term)
    }
}

fn cas_options(options: &EtcdOptions) -> CasOptions {
    let mut cas = CasOptions {
        name: "etcd",
        prefix: options.prefix().to_owned(),
        // Two cells for each bid, and the member's.
        batch: (MOST - 1) / 2,
        concurrency: 64,
        ..CasOptions::default()
    };
    if let Some(settings) = options.timings.as_ref() {
        cas.drift_ppm = Settings::drift_ppm(settings);
    }
    cas
}

fn check_version(version: &str) -> Result<()> {
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let found = parts.next().zip(parts.next());
    if found.is_some_and(|found| found >= OLDEST) {
        return Ok(());
    }
    let shown: String = version.chars().take(32).collect();
    let what = format!("the server is etcd {shown:?}: it must be at least 3.4");
    Err(Error::new(ErrorKind::Invalid, what).remedy("upgrade it"))
}

/// Refuses a prefix below which another program keeps its keys.
async fn check_prefix(etcd: &Etcd, prefix: &str) -> Result<()> {
    const KINDS: [&str; 6] = ["elections", "members", "standing", "names", "floor", "terms"];
    let below = format!("{}/", prefix.trim_matches('/'));
    let found = etcd.range(&lists(below.as_bytes(), &below, LOOKED_AT)).await?;
    let is_ours = |text: &str| {
        let rest = key(text).and_then(|key| Some(key.strip_prefix(&below)?.to_owned()));
        rest.is_some_and(|rest| rest.split('/').nth(1).is_some_and(|kind| KINDS.contains(&kind)))
    };
    match found.kvs.iter().find(|kv| !is_ours(&kv.key)) {
        None => Ok(()),
        Some(other) => {
            let shown = key(&other.key).unwrap_or_else(|| "one that is no text".to_owned());
            let what =
                format!("the prefix {prefix} has keys of another program, such as {shown:?}");
            Err(Error::new(ErrorKind::Foreign, what).remedy("use another prefix"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_is_refused_by_its_version() {
        for fine in ["3.4.23", "3.5.1", "3.6.0", "4.0.0"] {
            assert!(check_version(fine).is_ok(), "{fine}");
        }
        for old in ["3.3.27", "2.3.8", "", "x"] {
            let error = check_version(old).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{old}");
            assert!(error.to_string().contains("at least 3.4"), "{error}");
        }
    }
}
