//! What can be set, and how a URL says it.

use std::fmt;
use std::time::Duration;

use tenure_core::{Namespace, Settings, Term};
use tenure_store::tls::Tls;
use tenure_store::url::{check_interval, decode, flag, millis, options as options_of, unknown};
use tenure_store::{Error, ErrorKind, Result};

use crate::fence::Fence;

/// Where records lie if the URL names no prefix.
const PREFIX: &str = "tenure";
/// Where etcd answers if the URL names no port.
const PORT: u16 = 2379;

/// How an [`EtcdStore`](crate::EtcdStore) is opened.
///
/// ```
/// use tenure_etcd::EtcdOptions;
///
/// let options = EtcdOptions::from_url("etcd://10.0.0.1,10.0.0.2:2479/elections?tls=yes")?;
/// assert_eq!(options.endpoints(), ["https://10.0.0.1:2379", "https://10.0.0.2:2479"]);
/// assert_eq!(options.prefix(), "elections");
///
/// let options = options.user("app", "hunter2");
/// assert!(!format!("{options:?}").contains("hunter2"));
/// # Ok::<(), tenure_store::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct EtcdOptions {
    hosts: Vec<String>,
    encrypted: bool,
    endpoints: Vec<String>,
    prefix: String,
    pub(crate) tls: Tls,
    pub(crate) user: Option<(String, String)>,
    request_timeout: Option<Duration>,
    pub(crate) timings: Option<Settings>,
}

impl EtcdOptions {
    /// Understands `etcd://host1,host2:port,host3/prefix`. The prefix is `tenure` if there
    /// is none, a port 2379.
    ///
    /// Options: `tls` (yes or no; yes if an option of [`Tls`] is given), `request_timeout_ms`,
    /// and those of [`Tls`]. User and password belong before the hosts, as in
    /// `etcd://user:password@host`, or in `ETCD_USER` and `ETCD_PASSWORD`, which keeps
    /// them out of arguments and logs. No error repeats them.
    pub fn from_url(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("etcd://").ok_or_else(|| {
            refuse("the URL is not one of etcd").remedy("write etcd://host1,host2,host3/prefix")
        })?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, path) = match path.rsplit_once('@') {
            Some((login, path)) => (Some(login), path),
            None => (None, path),
        };
        let (hosts, prefix) = path.split_once('/').unwrap_or((path, ""));
        let hosts: Vec<String> = hosts.split(',').map(host).collect::<Result<_>>()?;
        let prefix = prefix.trim_matches('/');
        let mut options = Self {
            hosts,
            encrypted: false,
            endpoints: Vec::new(),
            prefix: if prefix.is_empty() { PREFIX.into() } else { prefix.into() },
            tls: Tls::new(),
            user: login.map(credentials).transpose()?,
            request_timeout: None,
            timings: None,
        };
        let mut wants_tls = None;
        for option in options_of(query) {
            let (key, value) = option?;
            match key {
                "tls" => wants_tls = Some(flag(key, &value)?),
                "request_timeout_ms" => options.request_timeout = Some(millis(key, &value)?),
                _ if options.tls.set(key, &value) => options.encrypted = true,
                _ => {
                    let known = [&["tls", "request_timeout_ms"][..], &Tls::KEYS].concat();
                    return Err(unknown("etcd", key, &known));
                }
            }
        }
        options.encrypted = wants_tls.unwrap_or(options.encrypted);
        let scheme = if options.encrypted { "https" } else { "http" };
        options.endpoints = options.hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        options.checked()
    }

    /// The user and password to log in with. They come before those of the URL and of the
    /// environment, and are never printed.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Takes the timings of the members that will use the store: how long a request may
    /// take, and how far clocks may drift. What the URL says itself wins.
    pub fn settings(mut self, settings: &Settings) -> Self {
        self.timings = Some(settings.clone());
        self
    }

    /// How long a request may take, all endpoints together. Default: as the settings say,
    /// else 5 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Where the cluster answers.
    #[must_use]
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// What all keys begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Another prefix.
    pub fn at(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// What a transaction of your own compares, so that it fails once a newer term than this
    /// was won.
    #[must_use]
    pub fn fence(&self, namespace: &Namespace, term: &Term) -> Fence {
        Fence::new(&self.prefix, namespace, term)
    }

    pub(crate) fn timeout(&self) -> Duration {
        let from_settings = self.timings.as_ref().map(Settings::request_timeout);
        self.request_timeout.or(from_settings).unwrap_or(Duration::from_secs(5))
    }

    /// Whether a password leaves this host where others may read it.
    pub(crate) fn sends_password_in_clear(&self) -> bool {
        let is_here = |host: &String| {
            ["127.0.0.1:", "[::1]:", "localhost:"].iter().any(|here| host.starts_with(here))
        };
        self.login().is_some() && !self.encrypted && !self.hosts.iter().all(is_here)
    }

    /// The credentials, also from the environment.
    pub(crate) fn login(&self) -> Option<(String, String)> {
        let from_environment = || {
            let name = std::env::var("ETCD_USER").ok().filter(|name| !name.is_empty())?;
            Some((name, std::env::var("ETCD_PASSWORD").unwrap_or_default()))
        };
        self.user.clone().or_else(from_environment)
    }

    pub(crate) fn checked(self) -> Result<Self> {
        if let Some(timeout) = self.request_timeout {
            check_interval("request timeout of the etcd store", timeout)?;
        }
        let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=' | '/'));
        if let Some(odd) = self.prefix.chars().find(|c| odd(*c)) {
            return Err(refuse(format!("the prefix of the keys has a {odd:?}"))
                .remedy("use ASCII letters, digits, '-', '_', '=' and '/'"));
        }
        Ok(self)
    }
}

/// A host with its port.
fn host(text: &str) -> Result<String> {
    let fine =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']');
    if text.is_empty() || !text.chars().all(fine) {
        return Err(refuse("the etcd: URL names no host, or one that cannot be")
            .remedy("write etcd://host1,host2,host3/prefix"));
    }
    let has_port = text.rsplit_once(':').is_some_and(|(before, port)| {
        !port.ends_with(']') && port.parse::<u16>().is_ok() && !before.is_empty()
    });
    Ok(if has_port { text.to_owned() } else { format!("{text}:{PORT}") })
}

fn credentials(login: &str) -> Result<(String, String)> {
    let (name, password) = login.split_once(':').unwrap_or((login, ""));
    Ok((decode(name)?, decode(password)?))
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("request_timeout", &self.timeout())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        EtcdOptions::from_url(url).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason_and_without_a_secret() {
        assert!(refused("etcd:///p").contains("names no host"));
        assert!(refused("etcd://a,,b/p").contains("names no host"));
        assert!(refused("etcd://a/p?colour=red").contains("\"colour\""));
        assert!(refused("etcd://a/p.q").contains("'.'"));
        assert!(refused("etcd://a/p?request_timeout_ms=0").contains("request timeout"));
        let secret = refused("etcd://user:hunter2@a/p?colour=red");
        assert!(!secret.contains("hunter2"), "{secret}");
    }

    #[test]
    fn hosts_have_ports_and_addresses_of_six_have_brackets() {
        let options = EtcdOptions::from_url("etcd://[::1],[::2]:99,h").unwrap();
        let expected = ["http://[::1]:2379", "http://[::2]:99", "http://h:2379"];
        assert_eq!(options.endpoints(), expected);
        assert_eq!(options.prefix(), "tenure");
        let secured = EtcdOptions::from_url("etcd://h?ca_file=/x.pem").unwrap();
        assert_eq!(secured.endpoints(), ["https://h:2379"]);
    }

    #[test]
    fn a_password_may_have_what_a_url_may_not() {
        let options = EtcdOptions::from_url("etcd://me:p%40ss%2Fw@h/x").unwrap();
        assert_eq!(options.login(), Some(("me".into(), "p@ss/w".into())));
        assert!(options.sends_password_in_clear());
        let safe = ["etcd://me:p@h?tls=yes", "etcd://me:p@127.0.0.1,localhost:99"];
        for url in safe {
            assert!(!EtcdOptions::from_url(url).unwrap().sends_password_in_clear(), "{url}");
        }
    }
}
