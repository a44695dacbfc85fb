//! What can be set, and how a URL says it.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tenure_store::url::{check_interval, flag, millis};
use tenure_store::{Error, ErrorKind, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslNegotiation, TargetSessionAttrs};

use crate::address::Address;
use crate::password::PasswordSource;
use crate::words::{Environment, Words};

/// The longest name PostgreSQL gives a schema, a channel or a program, in bytes.
const MAX_IDENTIFIER: usize = 63;

/// How much of TLS is asked for, as libpq has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server offers it; the certificate is not looked at.
    #[default]
    Prefer,
    /// Always; the certificate is looked at only if a root is given.
    Require,
    /// Always, with a certificate of a trusted root.
    VerifyCa,
    /// Always, with a certificate of a trusted root for the host in the URL.
    VerifyFull,
}

/// Whose signature makes a server's certificate good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Whomever the system trusts.
    System,
    /// Those in a file.
    File(PathBuf),
    /// Those in the user's own file, if there is one; else the system's.
    Usual(Option<PathBuf>),
}

/// The certificate that this program shows, and its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Named, or else the user's own, which need not be there.
    pub(crate) cert: Option<(PathBuf, bool)>,
    pub(crate) key: Option<PathBuf>,
}

/// How a [`PostgresStore`](crate::PostgresStore) is opened.
///
/// ```
/// use tenure_postgres::PostgresOptions;
///
/// let url = "postgres://app:secret@db-1,db-2/app?sslmode=require&schema=tenure";
/// let options = PostgresOptions::from_url(url).unwrap();
/// assert!(!format!("{options:?}").contains("secret"));
/// assert!(PostgresOptions::from_url("postgres://db/app?sslmode=sometimes").is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PostgresOptions {
    /// All but where the server is.
    pub(crate) config: Config,
    pub(crate) addresses: Vec<Address>,
    /// Whether they are tried in any order.
    shuffled: bool,
    pub(crate) passfile: Option<PathBuf>,
    /// Comes before every other password.
    pub(crate) password_source: Option<PasswordSource>,
    pub(crate) ssl: SslMode,
    pub(crate) roots: Roots,
    pub(crate) identity: Identity,
    pub(crate) schema: String,
    pub(crate) owner: Option<String>,
    pub(crate) migrate: bool,
    pub(crate) request_timeout: Duration,
    pub(crate) fence_wait: Duration,
    pub(crate) poll: Duration,
    pub(crate) listen: bool,
}

impl PostgresOptions {
    /// Understands a URL as libpq does, and what it leaves open is taken from the
    /// service file and the environment, as libpq does: `PGHOST`, `PGPASSWORD`,
    /// `PGPASSFILE`, `PGSERVICE` and the rest. So no password needs to be in a URL.
    ///
    /// It knows several hosts, sockets (`postgres:///db?host=/run/postgresql`),
    /// `hostaddr`, `user`, `password`, `passfile`, `service`, `application_name`,
    /// `options`, `connect_timeout`, `target_session_attrs` (here `read-write` unless it
    /// says otherwise), `load_balance_hosts`, `channel_binding`, `sslmode`,
    /// `sslrootcert`, `sslcert`, `sslkey`, `sslnegotiation` and the keepalives. Of its
    /// own it knows `schema` (default `tenure`), `owner`, `migrate=0`, `listen=0`,
    /// `poll_ms` and `request_timeout_ms`. No error repeats a password.
    pub fn from_url(url: &str) -> Result<Self> {
        Self::from_url_with(url, |name| std::env::var(name).ok())
    }

    /// The same with another environment: a program may have its own, or none.
    ///
    /// ```
    /// use tenure_postgres::PostgresOptions;
    ///
    /// let port = |name: &str| (name == "PGPORT").then(|| "port".to_owned());
    /// assert!(PostgresOptions::from_url_with("postgres://db/app", port).is_err());
    /// assert!(PostgresOptions::from_url_with("postgres://db/app", |_| None).is_ok());
    /// ```
    pub fn from_url_with(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let words = Words::gather(url, &environment)?;
        let mut options = Self {
            config: driver(&words)?,
            addresses: Address::all(&words)?,
            shuffled: match words.get("load_balance_hosts") {
                None | Some("disable") => false,
                Some("random") => true,
                Some(_) => return Err(one_of("load_balance_hosts", "disable or random")),
            },
            passfile: None,
            password_source: None,
            ssl: SslMode::Prefer,
            roots: Roots::System,
            identity: Identity::default(),
            schema: words.get("schema").unwrap_or("tenure").into(),
            owner: words.get("owner").map(str::to_owned),
            migrate: words.get("migrate").map_or(Ok(true), |it| flag("migrate", it))?,
            request_timeout: Duration::ZERO,
            fence_wait: Duration::ZERO,
            poll: Duration::from_secs(1),
            listen: words.get("listen").map_or(Ok(true), |it| flag("listen", it))?,
        }
        .request_timeout(Duration::from_secs(3));
        if let Some(value) = words.get("poll_ms") {
            options.poll = millis("poll_ms", value)?;
        }
        if let Some(value) = words.get("request_timeout_ms") {
            options = options.request_timeout(millis("request_timeout_ms", value)?);
        }
        options.set_files(&words, &environment);
        options.set_tls(&words)?;
        options.checked()
    }

    /// The files that are named, or else the user's own.
    fn set_files(&mut self, words: &Words, environment: Environment<'_>) {
        let named = |word: &str| words.get(word).map(PathBuf::from);
        let home = environment("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let own = |name: &str| home.as_ref().map(|home| home.join(name));
        self.passfile = named("passfile").or_else(|| own(".pgpass"));
        let cert = named("sslcert").map(|path| (path, true));
        self.identity = Identity {
            cert: cert.or_else(|| Some((own(".postgresql/postgresql.crt")?, false))),
            key: named("sslkey").or_else(|| own(".postgresql/postgresql.key")),
        };
        self.roots = match named("sslrootcert") {
            Some(path) if path.as_os_str() == "system" => Roots::System,
            Some(path) => Roots::File(path),
            None => Roots::Usual(own(".postgresql/root.crt")),
        };
    }

    /// The public authorities sign certificates for every owner of a domain: so
    /// the name is always looked at, as libpq has it.
    fn set_tls(&mut self, words: &Words) -> Result<()> {
        let named = words.get("sslmode").map(ssl_mode).transpose()?;
        let system = self.roots == Roots::System;
        if system && named.is_some_and(|mode| mode != SslMode::VerifyFull) {
            return Err(refuse("sslrootcert=system goes with sslmode=verify-full alone")
                .remedy("leave sslmode out, or name a file in sslrootcert"));
        }
        let usual = if system { SslMode::VerifyFull } else { SslMode::default() };
        self.ssl = named.unwrap_or(usual);
        Ok(())
    }

    /// Where to connect to, one after the other.
    pub(crate) fn addresses_in_turn(&self) -> Vec<Address> {
        let mut addresses = self.addresses.clone();
        if self.shuffled {
            for last in (1..addresses.len()).rev() {
                let drawn = getrandom::u64().unwrap_or_default();
                let one = usize::try_from(drawn % (last as u64 + 1)).unwrap_or(last);
                addresses.swap(one, last);
            }
        }
        addresses
    }

    /// The schema that holds Tenure's tables and functions. Default: `tenure`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// The role that owns the schema. With it no other owner is accepted, and this one
    /// is, whatever else is known of it; see `docs/security.md`.
    pub fn owner(mut self, role: impl Into<String>) -> Self {
        self.owner = Some(role.into());
        self
    }

    /// How long a request may take, on both sides. Default: 3 s. It must be
    /// shorter than what is left of trust.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self.fence_wait = (timeout / 4).min(Duration::from_millis(500));
        self
    }

    /// How long a claim waits for an open transaction that has fenced the last
    /// term (C42). Default: a quarter of the request timeout, at most 500 ms.
    pub fn fence_wait(mut self, wait: Duration) -> Self {
        self.fence_wait = wait;
        self
    }

    /// How often to look where notifications do not arrive: behind a pooler.
    /// Default: 1 s.
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// Whether to install or upgrade the schema. Default: yes, if need be.
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Whether to use `LISTEN` at all. Default: yes, where it turns out to work.
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Asks the application for a password at every connection: for those that are valid for
    /// some minutes, as an AWS or Google Cloud IAM token is. It comes before every other
    /// password. An error counts as a store that cannot be reached, and it is asked again
    /// after a pause. It is part of the connection's time: keep it short, or answer from
    /// memory and renew beside it.
    ///
    /// It runs on the thread that carries the store's connections: never block in it.
    ///
    /// ```
    /// use tenure_postgres::PostgresOptions;
    ///
    /// # async fn token() -> Result<String, std::io::Error> { Ok("short-lived".into()) }
    /// let options = PostgresOptions::from_url("postgres://app@db/app")?.password_from(token);
    /// # drop(options);
    /// # Ok::<(), tenure_store::Error>(())
    /// ```
    pub fn password_from<F, Fut, E>(mut self, ask: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.password_source = Some(PasswordSource::new(ask));
        self
    }

    /// The password to use from the next connection on.
    pub fn password(mut self, password: impl AsRef<[u8]>) -> Self {
        self.config.password(password);
        self
    }

    /// For how many milliseconds to wait for a lock. It is given up before the answer
    /// is: then the error says which.
    pub(crate) fn lock_wait(&self) -> i32 {
        i32::try_from(self.request_timeout.mul_f64(0.75).as_millis()).unwrap_or(i32::MAX)
    }

    pub(crate) fn checked(self) -> Result<Self> {
        let length = self.schema.len();
        if length == 0 || length > MAX_IDENTIFIER || self.schema.chars().any(char::is_control) {
            let message = format!("the schema name {:?} is {length} bytes long", self.schema);
            let remedy = format!("give it 1 to {MAX_IDENTIFIER} printable bytes");
            return Err(refuse(message).remedy(remedy));
        }
        check_interval("request timeout of the PostgreSQL store", self.request_timeout)?;
        check_interval("poll interval of the PostgreSQL store", self.poll)?;
        if self.fence_wait >= self.request_timeout {
            let message = format!(
                "a claim would wait {:?} for a fence, longer than the request timeout of {:?}",
                self.fence_wait, self.request_timeout
            );
            return Err(refuse(message).remedy("make the first shorter"));
        }
        Ok(self)
    }
}

/// What the driver is told of a connection, but for where the server is.
fn driver(words: &Words) -> Result<Config> {
    let mut config = Config::new();
    if let Some(user) = words.get("user") {
        config.user(user);
    }
    if let Some(password) = words.get("password") {
        config.password(password);
    }
    if let Some(database) = words.get("dbname") {
        config.dbname(database);
    }
    if let Some(options) = words.get("options") {
        config.options(options);
    }
    if let Some(name) = words.get("application_name") {
        config.application_name(name);
    }
    config.target_session_attrs(match words.get("target_session_attrs") {
        None | Some("read-write" | "primary") => TargetSessionAttrs::ReadWrite,
        Some("any") => TargetSessionAttrs::Any,
        Some("read-only") => TargetSessionAttrs::ReadOnly,
        Some(_) => return Err(one_of("target_session_attrs", "any, read-write or read-only")),
    });
    config.channel_binding(match words.get("channel_binding") {
        None | Some("prefer") => ChannelBinding::Prefer,
        Some("disable") => ChannelBinding::Disable,
        Some("require") => ChannelBinding::Require,
        Some(_) => return Err(one_of("channel_binding", "disable, prefer or require")),
    });
    config.ssl_negotiation(match words.get("sslnegotiation") {
        None | Some("postgres") => SslNegotiation::Postgres,
        Some("direct") => SslNegotiation::Direct,
        Some(_) => return Err(one_of("sslnegotiation", "postgres or direct")),
    });
    // A peer that vanished is noticed without a statement.
    let or = |value: Option<u64>, usual: u64| value.filter(|it| *it > 0).unwrap_or(usual);
    let seconds = |value, usual| Duration::from_secs(or(value, usual));
    config.keepalives(number::<u64>(words, "keepalives")? != Some(0));
    config.keepalives_idle(seconds(number(words, "keepalives_idle")?, 10));
    config.keepalives_interval(seconds(number(words, "keepalives_interval")?, 5));
    config.keepalives_retries(number(words, "keepalives_count")?.unwrap_or(3));
    let unanswered = or(number(words, "tcp_user_timeout")?, 30_000);
    config.tcp_user_timeout(Duration::from_millis(unanswered));
    // None, or one below, is none.
    if let Some(wait @ 1..) = number::<i32>(words, "connect_timeout")? {
        config.connect_timeout(Duration::from_secs(u64::from(wait.unsigned_abs())));
    }
    Ok(config)
}

fn number<T: FromStr>(words: &Words, word: &str) -> Result<Option<T>> {
    let number = words.get(word).map(|text| text.trim().parse()).transpose();
    number.map_err(|_| one_of(word, "a whole number"))
}

fn one_of(word: &str, all: &str) -> Error {
    refuse(format!("the {word} for PostgreSQL is not known")).remedy(format!("write {all}"))
}

/// By which the server lists our sessions, unless the options say otherwise: which program, which
/// process of it and on which machine, and what the session is for.
pub(crate) fn application_name(what: &str) -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name()?.to_str());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let process = format!(" {}@{}", std::process::id(), host.trim());
    let mut name = format!("tenure {what}: {}", program.unwrap_or("?"));
    let cut = |text: &mut String, most: usize| {
        let at = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(at.unwrap_or(0));
    };
    cut(&mut name, MAX_IDENTIFIER / 2 + 8);
    name += &process;
    cut(&mut name, MAX_IDENTIFIER);
    name
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn ssl_mode(value: &str) -> Result<SslMode> {
    Ok(match value {
        "disable" => SslMode::Disable,
        "allow" | "prefer" => SslMode::Prefer,
        "require" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" => SslMode::VerifyFull,
        _ => {
            return Err(one_of("sslmode", "disable, prefer, require, verify-ca or verify-full"));
        }
    })
}

#[cfg(test)]
mod tests;
