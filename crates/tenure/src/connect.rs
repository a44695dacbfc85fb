//! From a URL to a store. The only module that names the backends.

use std::borrow::Cow;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenure_core::{Incarnation, Settings};
use tenure_store::{MemoryStore, SharedStore};

#[cfg(feature = "sqlite")]
use crate::percent;
use crate::time::Time;
use crate::{Error, Result};

/// Where the store is.
#[derive(Debug)]
pub(crate) enum Target {
    Memory {
        name: String,
    },
    #[cfg(feature = "sqlite")]
    Sqlite {
        path: std::path::PathBuf,
        query: String,
    },
    #[cfg(feature = "postgres")]
    Postgres {
        options: Box<tenure_postgres::PostgresOptions>,
        /// The URL says how long a request may take, so the settings do not.
        timed: bool,
    },
    #[cfg(feature = "object")]
    Bucket {
        options: Box<tenure_object::BucketOptions>,
    },
    /// One that the application brought along.
    Given(SharedStore),
}

/// A store that was opened, with what only some stores have.
pub(crate) struct Opened {
    pub(crate) store: SharedStore,
    pub(crate) locks: LivenessLocks,
}

impl Opened {
    fn plain(store: SharedStore) -> Self {
        Self { store, locks: LivenessLocks::default() }
    }
}

type FindLock = dyn Fn(Incarnation) -> Option<OwnedFd> + Send + Sync;

/// Finds the kernel lock that proves a member's life, where the store goes by
/// such locks (rule M4).
#[derive(Clone, Default)]
pub(crate) struct LivenessLocks(Option<Arc<FindLock>>);

impl LivenessLocks {
    pub(crate) fn of(&self, life: Incarnation) -> Option<OwnedFd> {
        self.0.as_ref().and_then(|find| find(life))
    }
}

impl std::fmt::Debug for LivenessLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LivenessLocks").field(&self.0.is_some()).finish()
    }
}

/// The statements that make a store's tables, to be applied by hand by somebody
/// who may; `None` for a store that has none. `store` is a name as in a URL.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// assert!(tenure::schema("sqlite")?.unwrap().contains("CREATE TABLE"));
/// assert_eq!(tenure::schema("memory")?, None);
/// assert!(tenure::schema("postgrse").is_err());
/// # Ok::<(), tenure::Error>(())
/// ```
pub fn schema(store: &str) -> Result<Option<Cow<'static, str>>> {
    known(store)?;
    match store {
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Some(tenure_sqlite::SCHEMA.into())),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            Ok(Some(tenure_postgres::PostgresStore::schema_sql("tenure").into()))
        }
        _ => Ok(None),
    }
}

/// A store as users name it, and what it takes to have it.
struct Scheme {
    scheme: &'static str,
    feature: &'static str,
    compiled: bool,
    example: &'static str,
}

const SCHEMES: &[Scheme] = &[
    Scheme { scheme: "memory", feature: "", compiled: true, example: "memory:" },
    Scheme {
        scheme: "sqlite",
        feature: "sqlite",
        compiled: cfg!(feature = "sqlite"),
        example: "sqlite:/var/lib/app/tenure.db",
    },
    Scheme {
        scheme: "postgres",
        feature: "postgres",
        compiled: cfg!(feature = "postgres"),
        example: "postgres://user@host/database",
    },
    Scheme {
        scheme: "postgresql",
        feature: "postgres",
        compiled: cfg!(feature = "postgres"),
        example: "postgresql://user@host/database",
    },
    Scheme {
        scheme: "s3",
        feature: "object",
        compiled: cfg!(feature = "object"),
        example: "s3://bucket/prefix",
    },
    Scheme {
        scheme: "gs",
        feature: "object",
        compiled: cfg!(feature = "object"),
        example: "gs://bucket/prefix",
    },
    Scheme {
        scheme: "az",
        feature: "object",
        compiled: cfg!(feature = "object"),
        example: "az://container/prefix",
    },
];

impl Target {
    /// Understands a URL. Nothing of it that could be a secret is repeated in
    /// an error.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once(':') else {
            let message = "the store's URL has no scheme: write one of ".to_owned();
            return Err(Error::Url(message + &examples()));
        };
        known(scheme)?;
        Self::open_scheme(scheme, rest)
    }

    fn open_scheme(scheme: &str, rest: &str) -> Result<Self> {
        match scheme {
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    let message = "the URL sqlite: names no file: write sqlite:/path/to/file.db";
                    return Err(Error::Url(message.into()));
                }
                Ok(Target::Sqlite { path: percent::path(path)?, query: query.into() })
            }
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                let options =
                    tenure_postgres::PostgresOptions::from_url(&format!("{scheme}:{rest}"))
                        .map_err(|error| Error::Url(error.to_string()))?;
                let timed = rest.contains("request_timeout_ms=");
                Ok(Target::Postgres { options: Box::new(options), timed })
            }
            #[cfg(feature = "object")]
            "s3" | "gs" | "az" => {
                let options = tenure_object::BucketOptions::from_url(&format!("{scheme}:{rest}"))
                    .map_err(|error| Error::Url(error.to_string()))?;
                Ok(Target::Bucket { options: Box::new(options) })
            }
            _ => Ok(Target::Memory { name: rest.trim_start_matches('/').into() }),
        }
    }

    /// What else the URL says is understood when the store is opened.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn check(&self, settings: &Settings) -> Result<()> {
        let _ = settings;
        match self {
            #[cfg(feature = "sqlite")]
            Target::Sqlite { query, .. } => sqlite_options(query, settings).map(drop),
            _ => Ok(()),
        }
    }

    /// Opens the store. Runs on the driver's thread and runtime.
    pub(crate) async fn open(
        &self,
        time: &Time,
        settings: &Settings,
        read_only: bool,
    ) -> Result<Opened> {
        let _ = (settings, read_only);
        match self {
            Target::Given(store) => Ok(Opened::plain(store.clone())),
            Target::Memory { name } => Ok(Opened::plain(Arc::new(memory(name, time)))),
            #[cfg(feature = "postgres")]
            Target::Postgres { options, timed } => {
                let mut options = options.as_ref().clone();
                if !timed {
                    options = options.request_timeout(settings.request_timeout());
                }
                let store = tenure_postgres::PostgresStore::open(options).await?;
                Ok(Opened::plain(store.shared()))
            }
            #[cfg(feature = "object")]
            Target::Bucket { options } => {
                let options = options.as_ref().clone().settings(settings);
                let store = match time {
                    Time::Boot => tenure_object::BucketStore::open(options).await?,
                    Time::Manual(clock) => {
                        tenure_object::BucketStore::open_with(options, clock.clone()).await?
                    }
                };
                Ok(Opened::plain(store.shared()))
            }
            #[cfg(feature = "sqlite")]
            Target::Sqlite { path, query } => {
                let options = sqlite_options(query, settings)?.read_only(read_only);
                let store = tenure_sqlite::SqliteStore::open(path, options).await?;
                let lock = LivenessLocks(Some(Arc::new({
                    let store = store.clone();
                    move |life| store.liveness_lock(life)
                })));
                Ok(Opened { store: Arc::new(store), locks: lock })
            }
        }
    }
}

/// Refuses a store that is not known or not compiled in.
fn known(scheme: &str) -> Result<()> {
    match SCHEMES.iter().find(|s| s.scheme == scheme) {
        Some(Scheme { feature, compiled: false, .. }) => Err(Error::Url(format!(
            "the store {scheme} is not compiled in: turn on the feature {feature:?} of the \
             tenure crate"
        ))),
        Some(_) => Ok(()),
        None => Err(Error::Url(format!(
            "{scheme:?} is not a store that is known here{}: write one of {}",
            did_you_mean(scheme).map(|s| format!(" (did you mean {s:?}?)")).unwrap_or_default(),
            examples()
        ))),
    }
}

/// `memory:` is a store of one's own; `memory:name` is shared by all of this
/// process that name it so.
fn memory(name: &str, time: &Time) -> MemoryStore {
    static NAMED: OnceLock<Mutex<HashMap<String, MemoryStore>>> = OnceLock::new();
    let fresh = || match time {
        Time::Boot => MemoryStore::new(),
        Time::Manual(clock) => MemoryStore::with_clock(clock.clone()),
    };
    if name.is_empty() {
        return fresh();
    }
    let mut named =
        NAMED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    named.entry(name.into()).or_insert_with(fresh).clone()
}

#[cfg(feature = "sqlite")]
fn sqlite_options(query: &str, settings: &Settings) -> Result<tenure_sqlite::SqliteOptions> {
    let mut options = tenure_sqlite::SqliteOptions::new()
        .drift_ppm(settings.drift_ppm())
        .request_timeout(settings.request_timeout());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let number = || {
            value.parse::<u64>().map_err(|_| {
                let most = u64::MAX;
                Error::Url(format!("{key}={value:?} in the URL is not a whole number up to {most}"))
            })
        };
        match key {
            "journal_keep" => options = options.journal_keep(number()?),
            "busy_timeout_ms" => {
                options = options.busy_timeout(std::time::Duration::from_millis(number()?));
            }
            "share_file" => match number()? {
                yes @ 0..=1 => options = options.share_file(yes == 1),
                _ => {
                    return Err(Error::Url(format!("share_file={value} in the URL is not 0 or 1")));
                }
            },
            _ => {
                return Err(Error::Url(format!(
                    "sqlite: does not know the option {key:?}: it knows journal_keep, \
                     busy_timeout_ms and share_file"
                )));
            }
        }
    }
    Ok(options)
}

fn examples() -> String {
    let compiled = SCHEMES.iter().filter(|s| s.compiled);
    compiled.map(|s| s.example).collect::<Vec<_>>().join(", ")
}

/// The known scheme that differs least, if it differs little.
fn did_you_mean(scheme: &str) -> Option<&'static str> {
    let near = SCHEMES.iter().map(|s| (distance(s.scheme, scheme), s.scheme)).min()?;
    (near.0 <= 2).then_some(near.1)
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let swap = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = swap.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str) -> String {
        Target::parse(url).unwrap_err().to_string()
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
            let target = Target::parse(url).unwrap();
            let Target::Postgres { timed, .. } = &target else { panic!() };
            assert_eq!(*timed, url.contains("request_timeout_ms"));
            assert!(!format!("{target:?}").contains("hunter2"), "{target:?}");
        }
        assert!(said("postgres://h/d?sslmode=maybe").contains("verify-full"));
        assert!(said("postgre://h/d").contains("did you mean \"postgres\""));
        assert!(schema("postgres").unwrap().unwrap().contains("CREATE SCHEMA"));
    }

    #[cfg(feature = "object")]
    #[test]
    fn bucket_urls_have_three_schemes_and_are_checked_at_once() {
        for url in ["s3://b/p?region=eu-central-1", "gs://b", "az://c?account=me"] {
            assert!(matches!(Target::parse(url).unwrap(), Target::Bucket { .. }), "{url}");
        }
        assert!(said("s3://b?colour=red").contains("\"colour\""));
        let secret = said("s3://key:hunter2@b/p");
        assert!(secret.contains("environment") && !secret.contains("hunter2"), "{secret}");
        assert_eq!(schema("s3").unwrap(), None);
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
    fn sqlite_urls_have_two_forms_and_options() {
        for url in ["sqlite:/a/b.db?journal_keep=5", "sqlite:///a/b.db?journal_keep=5"] {
            let Target::Sqlite { path, query } = Target::parse(url).unwrap() else { panic!() };
            assert_eq!(path.to_str(), Some("/a/b.db"));
            assert!(sqlite_options(&query, &Settings::default()).is_ok());
        }
        assert!(said("sqlite:").contains("names no file"));
        let said = sqlite_options("colour=red", &Settings::default()).unwrap_err().to_string();
        assert!(said.contains("\"colour\""), "{said}");
        assert!(sqlite_options("journal_keep=many", &Settings::default()).is_err());
        assert!(sqlite_options("share_file=7", &Settings::default()).is_err());
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
        let mut dice = 7_u64;
        for _ in 0..20_000 {
            let mut url = String::new();
            for _ in 0..dice % 9 {
                dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                url.push_str(PIECES[usize::try_from(dice >> 33).unwrap() % PIECES.len()]);
            }
            dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7f);
            let secret = format!("postgres://user:hunter2@{url}");
            for text in [url.clone(), format!("sqlite:{url}"), secret.clone()] {
                if let Err(error) = Target::parse(&text) {
                    let said = error.to_string();
                    assert!(said.len() > 20, "{text:?}: {said}");
                    let leaks = text == secret && !url.contains("hunter2");
                    assert!(!leaks || !said.contains("hunter2"), "{text:?}: {said}");
                }
            }
        }
    }
}
