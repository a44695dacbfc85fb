//! From a URL to a store. The only module that names the backends: each has a file here
//! with its entry, and a line in [`BACKENDS`].

mod etcd;
mod memory;
mod object;
mod postgres;
mod sqlite;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{Incarnation, Settings};
use tenure_store::{Backoff, SharedStore, nearest};

use crate::time::Time;
use crate::{Error, Result};

#[cfg(feature = "postgres")]
pub use postgres::options as postgres_options;
#[cfg(all(feature = "sqlite", target_os = "linux"))]
pub use tenure_sqlite::sqlite_url;

/// The pauses between attempts to reach a store.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// Every store there is, also those that are not compiled in: their errors name the
/// feature to turn on.
const BACKENDS: &[Backend] =
    &[memory::BACKEND, sqlite::BACKEND, postgres::BACKEND, etcd::BACKEND, object::BACKEND];

/// A store as users name it, and what it takes to have it.
struct Backend {
    /// The schemes of its URLs, each with an example.
    schemes: &'static [(&'static str, &'static str)],
    /// The feature of this crate that compiles it in; empty if it always is.
    feature: &'static str,
    /// Whether it runs on this platform.
    here: bool,
    /// `None` if it is not compiled in.
    driver: Option<Driver>,
}

/// How a store is reached.
#[derive(Clone, Copy)]
struct Driver {
    /// Understands a whole URL. Nothing of it that could be a secret may be repeated
    /// in an error.
    parse: fn(&str) -> Result<Box<dyn Target>>,
    /// The statements that make the store's tables, if it has any.
    schema: fn() -> Option<Cow<'static, str>>,
}

/// Where a store is, understood and not yet opened.
#[async_trait]
pub(crate) trait Target: fmt::Debug + Send + Sync {
    /// Opens the store on the runtime that is to carry its connections.
    async fn open(&self, opening: &Opening<'_>) -> Result<Opened>;
}

/// What a store is opened with, beside what its URL says.
// Without a feature for a store nothing is read of it but the time.
#[cfg_attr(
    not(any(
        feature = "etcd",
        feature = "object",
        feature = "postgres",
        all(feature = "sqlite", target_os = "linux")
    )),
    allow(dead_code)
)]
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) time: &'a Time,
    pub(crate) settings: &'a Settings,
    pub(crate) read_only: bool,
    pub(crate) prove_death: bool,
}

/// A store that was opened, with what only some stores have.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: SharedStore,
    pub(crate) locks: LivenessLocks,
}

impl Opened {
    fn plain(store: SharedStore) -> Self {
        Self { store, locks: LivenessLocks::default() }
    }
}

/// A store that the application brought along.
#[derive(Debug)]
struct Given(SharedStore);

#[async_trait]
impl Target for Given {
    async fn open(&self, _: &Opening<'_>) -> Result<Opened> {
        Ok(Opened::plain(self.0.clone()))
    }
}

/// A kernel lock, as a file that is open; no other platform has a store that goes by one.
#[cfg(unix)]
type OwnedFd = std::os::fd::OwnedFd;
#[cfg(not(unix))]
type OwnedFd = std::convert::Infallible;

type FindLock = dyn Fn(Incarnation) -> Option<OwnedFd> + Send + Sync;

/// Finds the kernel lock that proves a member's life, where the store goes by
/// such locks (rule M4).
#[derive(Clone, Default)]
pub(crate) struct LivenessLocks(Option<Arc<FindLock>>);

impl LivenessLocks {
    #[cfg(unix)]
    pub(crate) fn of(&self, life: Incarnation) -> Option<OwnedFd> {
        self.0.as_ref().and_then(|find| find(life))
    }
}

impl fmt::Debug for LivenessLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LivenessLocks").field(&self.0.is_some()).finish()
    }
}

/// Understands a URL. Nothing of it that could be a secret is repeated in an error.
pub(crate) fn parse(url: &str) -> Result<Box<dyn Target>> {
    let Some((scheme, _)) = url.split_once(':') else {
        let message = "the store's URL has no scheme: write one of ".to_owned();
        return Err(Error::Url(message + &examples()));
    };
    (driver(scheme)?.parse)(url)
}

/// Opens a store. Attempts to reach it are repeated until `patience` is over.
pub(crate) async fn open(
    target: &dyn Target,
    opening: &Opening<'_>,
    patience: Duration,
) -> Result<Opened> {
    let began = opening.time.now();
    let mut pauses = PAUSES;
    let mut tries = 0;
    loop {
        let error = match target.open(opening).await {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        tries += 1;
        if patience.is_zero() || !error.may_pass() {
            return Err(error);
        }
        let waited = opening.time.now().since(began);
        let left = patience.saturating_sub(waited);
        if left.is_zero() {
            return Err(Error::StoreAway { waited, tries, last: Box::new(error) });
        }
        tracing::warn!(target: "tenure", %error, "the store cannot be reached; trying again");
        opening.time.sleep(pauses.pause().min(left)).await;
    }
}

/// The store that the application has opened itself.
pub(crate) fn given(store: SharedStore) -> Box<dyn Target> {
    Box::new(Given(store))
}

/// The statements that make a store's tables, to be applied by hand by a
/// role that may; `None` for a store that has none. `store` is a name as in a URL.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// assert!(tenure::store::schema("sqlite")?.unwrap().contains("CREATE TABLE"));
/// assert_eq!(tenure::store::schema("memory")?, None);
/// assert!(tenure::store::schema("postgrse").is_err());
/// # Ok::<(), tenure::Error>(())
/// ```
pub fn schema(store: &str) -> Result<Option<Cow<'static, str>>> {
    Ok((driver(store)?.schema)())
}

/// The way to a store; refuses one that is not known or not compiled in.
fn driver(scheme: &str) -> Result<Driver> {
    let has = |backend: &&Backend| backend.schemes.iter().any(|(name, _)| *name == scheme);
    let Some(backend) = BACKENDS.iter().find(has) else {
        let schemes = BACKENDS.iter().flat_map(|backend| backend.schemes);
        let near = nearest(scheme, schemes.map(|(name, _)| *name));
        let near = near.map(|near| format!(" (did you mean {near:?}?)"));
        return Err(Error::Url(format!(
            "{scheme:?} is not a store that is known here{}: write one of {}",
            near.unwrap_or_default(),
            examples()
        )));
    };
    backend.driver.ok_or_else(|| {
        if !backend.here {
            return Error::Url(format!(
                "the store {scheme} needs Linux: use one with a server, such as postgres"
            ));
        }
        Error::Url(format!(
            "the store {scheme} is not compiled in: turn on the feature {:?} of the tenure crate",
            backend.feature
        ))
    })
}

/// An error of a store's own parser, as every URL is answered with.
#[cfg(any(
    feature = "etcd",
    feature = "object",
    feature = "postgres",
    all(feature = "sqlite", target_os = "linux")
))]
#[allow(clippy::needless_pass_by_value)]
fn url_error(error: tenure_store::Error) -> Error {
    Error::Url(error.to_string())
}

fn examples() -> String {
    let compiled = BACKENDS.iter().filter(|backend| backend.driver.is_some());
    let examples = compiled.flat_map(|backend| backend.schemes).map(|(_, example)| *example);
    examples.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str) -> String {
        parse(url).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_url_says_what_to_write() {
        assert!(said("nowhere").contains("has no scheme"), "{}", said("nowhere"));
        assert!(said("sqlit:x").contains("did you mean \"sqlite\""), "{}", said("sqlit:x"));
        assert!(said("oracle://u:p@h").contains("\"oracle\" is not a store"));
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_store_that_is_not_compiled_in_names_its_feature() {
        assert!(said("sqlite:/a.db").contains("turn on the feature \"sqlite\""));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn postgres_urls_have_two_schemes_and_are_checked_at_once() {
        for url in ["postgres://u:hunter2@h/d", "postgresql://u@h/d?request_timeout_ms=500"] {
            let shown = format!("{:?}", parse(url).unwrap());
            let has_timeout = url.contains("request_timeout_ms");
            assert!(shown.contains(&format!("has_timeout: {has_timeout}")), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert!(said("postgres://h/d?sslmode=maybe").contains("verify-full"));
        assert!(said("postgre://h/d").contains("did you mean \"postgres\""));
        assert!(schema("postgres").unwrap().unwrap().contains("CREATE SCHEMA"));
    }

    #[cfg(feature = "object")]
    #[test]
    fn bucket_urls_have_three_schemes_and_are_checked_at_once() {
        for url in ["s3://b/p?region=eu-central-1", "gs://b", "az://c?account=me"] {
            assert!(format!("{:?}", parse(url).unwrap()).starts_with("Bucket"), "{url}");
        }
        assert!(said("s3://b?colour=red").contains("\"colour\""));
        let secret = said("s3://key:hunter2@b/p");
        assert!(secret.contains("environment") && !secret.contains("hunter2"), "{secret}");
        assert_eq!(schema("s3").unwrap(), None);
    }

    #[cfg(feature = "etcd")]
    #[test]
    fn etcd_urls_are_checked_at_once() {
        let shown = format!("{:?}", parse("etcd://me:hunter2@h1,h2/p").unwrap());
        assert!(shown.contains("http://h2:2379") && !shown.contains("hunter2"), "{shown}");
        assert!(said("etcd://h/p?colour=red").contains("\"colour\""));
    }

    #[cfg(not(feature = "object"))]
    #[test]
    fn a_bucket_names_the_feature_it_needs() {
        assert!(said("s3://b/p").contains("turn on the feature \"object\""));
    }

    #[test]
    fn an_error_repeats_no_secret() {
        assert!(!said("oracle://user:hunter2@host/db").contains("hunter2"));
        assert!(!said("hunter2@host/db").contains("hunter2"));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite_urls_are_checked_at_once() {
        let shown = format!("{:?}", parse("sqlite:/a/b.db?journal_keep=5").unwrap());
        assert!(shown.contains("/a/b.db") && shown.contains("journal_keep: 5"), "{shown}");
        assert!(said("sqlite:").contains("names no file"));
        assert!(said("sqlite:/a/b.db?colour=red").contains("\"colour\""));
    }

    /// Every scheme leads to one store, and each of them says what turns it on.
    #[test]
    fn no_two_stores_share_a_scheme() {
        let schemes = BACKENDS.iter().flat_map(|backend| backend.schemes);
        let mut names: Vec<_> = schemes.map(|(name, _)| *name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        let optional = BACKENDS.iter().filter(|backend| backend.driver.is_none());
        assert!(optional.into_iter().all(|backend| !backend.feature.is_empty()));
    }

    /// Whatever is given as a URL is a target or an explained refusal, and a
    /// password in it is not repeated.
    #[test]
    fn any_text_is_a_target_or_an_explained_refusal() {
        const PIECES: [&str; 20] = [
            "sqlite",
            "memory",
            "postgres",
            "postgresql",
            ":",
            "//",
            "/",
            "?",
            "&",
            "=",
            "@",
            "%",
            "%zz",
            "hunter2",
            "user",
            "host:99999",
            "request_timeout_ms=",
            "-1",
            "\u{0}",
            "ü",
        ];
        let mut dice = tenure_testkit::Dice::new(7);
        for _ in 0..20_000 {
            let mut url = String::new();
            for _ in 0..dice.below(9) {
                url.push_str(dice.one_of(&PIECES));
            }
            let secret = format!("postgres://user:hunter2@{url}");
            for text in [url.clone(), format!("sqlite:{url}"), secret.clone()] {
                if let Err(error) = parse(&text) {
                    let said = error.to_string();
                    assert!(said.len() > 20, "{text:?}: {said}");
                    let leaks = text == secret && !url.contains("hunter2");
                    assert!(!leaks || !said.contains("hunter2"), "{text:?}: {said}");
                }
            }
        }
    }
}
