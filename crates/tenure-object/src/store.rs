//! Opening a bucket as a store.

use std::sync::Arc;
use std::time::Duration;

use object_store::RetryConfig;
use tenure_cas::{CasOptions, CasStore, Register};
use tenure_cas::{Repeats, Retrying};
use tenure_core::Settings;
use tenure_store::{BootClock, Clock, Error, ErrorKind, Result, SharedStore};

use crate::cloud::Cloud;
use crate::http::{Said, Wire, chain};
use crate::options::BucketOptions;
use crate::tombstones::Tombstones;
use crate::{aws, azure, gcs, pace, probe};

/// For how long requests are repeated while a bucket is opened.
const OPENING: Duration = Duration::from_millis(2_500);

/// A bucket as a store: [`CasStore`] over the bucket's objects.
///
/// ```no_run
/// use tenure_object::{BucketOptions, BucketStore};
/// # async fn example() -> Result<(), tenure_store::Error> {
/// let options = BucketOptions::from_url("s3://my-bucket/elections?region=eu-central-1")?;
/// let store = BucketStore::open(options).await?.shared();
/// assert_eq!(store.capabilities().name, "s3");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BucketStore {
    store: Arc<CasStore>,
    register: Arc<dyn Register>,
}

impl BucketStore {
    /// Opens a bucket, after a probe of what it does; nothing skips it. Fails
    /// with [`Invalid`](ErrorKind::Invalid) if conditions are ignored there or
    /// the timings would be throttled, with [`Denied`](ErrorKind::Denied) if the
    /// bucket is missing or something is not allowed.
    pub async fn open(options: BucketOptions) -> Result<Self> {
        Self::open_with(options, Arc::new(BootClock)).await
    }

    /// The same, on a clock of your own.
    pub async fn open_with(options: BucketOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let options = options.checked()?;
        pace::check(options.cloud, options.timings.as_ref())?;
        let wire = Wire::new(options.timeout(), &options.tls)?;
        let register: Arc<dyn Register> = match options.cloud {
            Cloud::S3 => Arc::new(aws::bucket(&options, &wire)?),
            Cloud::Azure => Arc::new(azure::container(&options, &wire)?),
            Cloud::Gcs => Arc::new(gcs::Bucket::open(&options, &wire)?),
        };
        let steady = |register: Arc<dyn Register>, within| -> Arc<dyn Register> {
            Arc::new(Retrying::new(register, clock.clone(), Repeats::within(within)))
        };
        // The caller waits for a bucket that it opens, and may have mistaken the endpoint.
        let probed = steady(register.clone(), options.timeout().min(OPENING));
        let found = probe::probe(&probed, options.cloud, &options.bucket, &options.prefix).await?;
        let register = if found.conditional_removal {
            register
        } else {
            tracing::info!(
                bucket = options.bucket,
                "the service does not remove by version: removed records stay as empty objects"
            );
            Arc::new(Tombstones(register))
        };
        let steady = steady(register.clone(), options.timeout());
        let store = CasStore::new(steady, clock, cas_options(&options))?;
        Ok(Self { store: Arc::new(store), register })
    }

    /// The store, for a client.
    #[must_use]
    pub fn shared(self) -> SharedStore {
        self.store
    }

    /// The bucket's objects, each of which can be compared and swapped: for
    /// records of your own beside Tenure's, such as a counter that carries the
    /// term of its last writer.
    #[must_use]
    pub fn register(&self) -> Arc<dyn Register> {
        self.register.clone()
    }
}

fn cas_options(options: &BucketOptions) -> CasOptions {
    let mut cas = CasOptions {
        name: options.cloud.scheme(),
        prefix: options.prefix.clone(),
        ..CasOptions::default()
    };
    let timings = options.timings.as_ref();
    if let Some(poll) = options.poll.or(timings.map(Settings::ttl)) {
        cas.poll = poll;
    }
    // Unless the options ask for it sooner: about once in the holder's ttl.
    cas.poll_held = options.poll_held.or(options.poll);
    if let Some(age) = options.listing_age {
        cas.listing_age = age;
    }
    if let Some(settings) = timings {
        cas.drift_ppm = settings.drift_ppm();
    }
    cas
}

/// No retries below us: a conditional write that conflicts with its own first
/// attempt would be told as a plain conflict, and a timed-out one would take
/// several timeouts. [`Retrying`] looks before it repeats a write.
pub(crate) fn never_again() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() }
}

/// The cloud's client was not made. Its words name settings, not their values.
pub(crate) fn unbuilt(cloud: Cloud, error: &object_store::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("the settings for {} cannot be used", cloud.service()))
        .caused_by(Said(chain(error)))
        .remedy("check the URL and the cloud's variables in the environment")
}
