//! What can be set, and how a URL says it.

use std::path::PathBuf;
use std::time::Duration;

use tenure_store::url::{decode, flag, millis};
use tenure_store::{Error, ErrorKind, Result};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

/// The longest name PostgreSQL gives a schema or a channel, in bytes.
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
    pub(crate) config: Config,
    pub(crate) ssl: SslMode,
    pub(crate) root_cert: Option<PathBuf>,
    pub(crate) schema: String,
    pub(crate) migrate: bool,
    pub(crate) request_timeout: Duration,
    pub(crate) fence_wait: Duration,
    pub(crate) poll: Duration,
    pub(crate) listen: bool,
}

impl PostgresOptions {
    /// Understands a URL as libpq does: users, passwords, several hosts,
    /// `connect_timeout`, `application_name`, `target_session_attrs` (here
    /// `read-write` unless it says otherwise), `sslmode` and `sslrootcert`. Of
    /// its own it knows `schema` (default `tenure`), `migrate=0`, `listen=0`,
    /// `poll_ms` and `request_timeout_ms`. No error repeats a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut own, mut passed) = (Vec::new(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "sslmode" | "sslrootcert" | "schema" | "migrate" | "listen" | "poll_ms"
                | "request_timeout_ms" => own.push((key, decode(value)?)),
                _ => passed.push(pair),
            }
        }
        let plain = format!("{base}?{}", passed.join("&"));
        // The driver would take all before it for the name of the user, and show it.
        if !base.contains('@') && plain.contains('@') {
            return Err(refuse("the PostgreSQL URL has an @ among its options and none before")
                .remedy("write an @ in an option, or in a password, as %40"));
        }
        let mut config: Config = plain.trim_end_matches('?').parse().map_err(|error| {
            // With an @ after the ?, what looks like an option may be the end of
            // a password.
            let text = if query.contains('@') {
                "an option in it is not known; is there a ? or an @ in the password? Write it as \
                 %3F or %40"
                    .to_owned()
            } else {
                cause_of(&error)
            };
            refuse(format!("the PostgreSQL URL is not understood: {text}"))
                .remedy("write postgres://user@host:5432/database?sslmode=require")
        })?;
        if !passed.iter().any(|pair| pair.starts_with("target_session_attrs=")) {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_application_name().is_none() {
            config.application_name("tenure");
        }
        if config.get_hosts().is_empty() {
            return Err(refuse("the PostgreSQL URL names no host")
                .remedy("write postgres://user@host/database"));
        }
        // A peer that vanished is noticed without a statement.
        config.keepalives_idle(Duration::from_secs(10));
        config.keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(30));
        let mut options = Self {
            config,
            ssl: SslMode::Prefer,
            root_cert: None,
            schema: "tenure".into(),
            migrate: true,
            request_timeout: Duration::from_secs(3),
            fence_wait: Duration::from_millis(500),
            poll: Duration::from_secs(1),
            listen: true,
        };
        for (key, value) in own {
            options = options.set(key, &value)?;
        }
        options.checked()
    }

    fn set(mut self, key: &str, value: &str) -> Result<Self> {
        match key {
            "sslmode" => self.ssl = ssl_mode(value)?,
            "sslrootcert" if value == "system" => {}
            "sslrootcert" => self.root_cert = Some(value.into()),
            "schema" => self.schema = value.into(),
            "migrate" => self.migrate = flag(key, value)?,
            "listen" => self.listen = flag(key, value)?,
            "poll_ms" => self.poll = millis(key, value)?,
            _ => self = self.request_timeout(millis(key, value)?),
        }
        Ok(self)
    }

    /// The schema that holds Tenure's tables and functions. Default: `tenure`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
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
        let least = Duration::from_millis(10);
        for (what, span) in [("request timeout", self.request_timeout), ("poll", self.poll)] {
            if span < least || span > Duration::from_secs(86_400) {
                let message = format!("the PostgreSQL store's {what} is {span:?}");
                return Err(refuse(message).remedy(format!("let it be {least:?} to one day")));
            }
        }
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
            return Err(refuse("the sslmode in the URL is not known")
                .remedy("write disable, prefer, require, verify-ca or verify-full"));
        }
    })
}

/// The parser's own words, which name an option but repeat no value of it.
fn cause_of(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str) -> String {
        PostgresOptions::from_url(url).unwrap_err().to_string()
    }

    #[test]
    fn a_url_sets_what_it_names_and_the_driver_gets_the_rest() {
        let url = "postgresql://u:p%40ss@a:1,b:2/db?connect_timeout=7&schema=my%20own&poll_ms=250\
                   &sslmode=verify-full&sslrootcert=/etc/root.pem&migrate=0&request_timeout_ms=800";
        let options = PostgresOptions::from_url(url).unwrap();
        assert_eq!(options.config.get_hosts().len(), 2);
        assert_eq!(options.config.get_password(), Some(&b"p@ss"[..]));
        assert_eq!(options.schema, "my own");
        assert_eq!(options.ssl, SslMode::VerifyFull);
        assert_eq!(options.root_cert, Some("/etc/root.pem".into()));
        assert_eq!(options.poll, Duration::from_millis(250));
        assert_eq!(options.fence_wait, Duration::from_millis(200));
        assert!(!options.migrate);
        let attrs = options.config.get_target_session_attrs();
        assert_eq!(attrs, TargetSessionAttrs::ReadWrite);
        let any = PostgresOptions::from_url("postgres://h/d?target_session_attrs=any").unwrap();
        assert_eq!(any.config.get_target_session_attrs(), TargetSessionAttrs::Any);
    }

    /// F3 for this store's own settings.
    #[test]
    fn options_are_checked_at_below_and_above_their_bounds() {
        let good = || PostgresOptions::from_url("postgres://h/d").unwrap();
        let long = "s".repeat(MAX_IDENTIFIER);
        assert!(good().schema(&long).checked().is_ok());
        assert!(good().schema(long + "s").checked().is_err());
        assert!(good().schema("").checked().is_err());
        let ms = Duration::from_millis;
        assert!(good().request_timeout(ms(10)).checked().is_ok());
        assert!(good().request_timeout(ms(9)).checked().is_err());
        assert!(good().poll(ms(9)).checked().is_err());
        assert!(good().request_timeout(ms(100)).fence_wait(ms(99)).checked().is_ok());
        assert!(good().request_timeout(ms(100)).fence_wait(ms(100)).checked().is_err());
    }

    #[test]
    fn a_wrong_url_says_what_to_write_and_repeats_no_secret() {
        assert!(said("postgres://h/d?sslmode=maybe").contains("verify-full"));
        assert!(said("postgres://h/d?poll_ms=often").contains("whole number"));
        assert!(said("postgres:///d").contains("names no host"), "{}", said("postgres:///d"));
        let odd = said("postgres://u:hunter2@h/d?colour=red");
        assert!(odd.contains("colour") && !odd.contains("hunter2"), "{odd}");
        for cut in ["postgres://u:x?hunter2@h/d", "postgres://u:x?poll_ms=hunter2@h/d"] {
            let shown = format!("{:?}", PostgresOptions::from_url(cut).map_err(|e| e.to_string()));
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        let at = said("postgres://h/d?password=hunter2&a=:b@c");
        assert!(at.contains("%40") && !at.contains("hunter2"), "{at}");
        assert!(PostgresOptions::from_url("postgres://u@h/d?application_name=a@b").is_ok());
        let port = said("postgres://u:hunter2@h:port/d");
        assert!(!port.contains("hunter2"), "{port}");
    }
}
