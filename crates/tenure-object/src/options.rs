//! What can be set, and how a URL says it.

use std::fmt;
use std::time::Duration;

use tenure_core::Settings;
use tenure_store::tls::Tls;
use tenure_store::url::{check_interval, flag, millis, options as options_of, unknown};
use tenure_store::{Error, ErrorKind, Result};

use crate::cloud::Cloud;

/// What every URL may say, and what only some may.
const COMMON: [&str; 3] = ["endpoint", "poll_ms", "request_timeout_ms"];

/// Where records lie if the URL names no prefix.
const PREFIX: &str = "tenure";

/// How a [`BucketStore`](crate::BucketStore) is opened.
///
/// ```
/// use tenure_object::{BucketOptions, Cloud};
///
/// let options = BucketOptions::from_url("s3://my-bucket/elections?region=eu-central-1")?;
/// assert_eq!(options.cloud(), Cloud::S3);
/// assert_eq!((options.bucket(), options.prefix()), ("my-bucket", "elections"));
///
/// // Credentials come from where each cloud's own tools take them, or from code:
/// let options = options.with("aws_access_key_id", "AKIA").with("aws_secret_access_key", "hunter2");
/// assert!(!format!("{options:?}").contains("hunter2"));
///
/// // They do not belong into a URL, which is printed and logged.
/// assert!(BucketOptions::from_url("s3://AKIA:hunter2@my-bucket").is_err());
/// # Ok::<(), tenure_store::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct BucketOptions {
    pub(crate) cloud: Cloud,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) virtual_hosted: bool,
    pub(crate) tls: Tls,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) poll: Option<Duration>,
    pub(crate) poll_held: Option<Duration>,
    pub(crate) listing_age: Option<Duration>,
    pub(crate) timings: Option<Settings>,
    /// Keys and values for the cloud's own client; the values may be secret.
    pub(crate) given: Vec<(String, String)>,
}

impl BucketOptions {
    /// Understands `s3://bucket/prefix`, `gs://bucket/prefix` and
    /// `az://container/prefix`. The prefix is `tenure` if there is none.
    ///
    /// All know the options `endpoint`, `poll_ms` and `request_timeout_ms`, and those of
    /// [`Tls`]; S3 knows `region` and `virtual_hosted`, Azure `account`. No error repeats what could be a
    /// secret.
    pub fn from_url(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        let Some(cloud) = Cloud::ALL.into_iter().find(|cloud| cloud.scheme() == scheme) else {
            return Err(refuse("the URL is not one of object storage")
                .remedy("write s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"));
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        if bucket.contains('@') {
            let text = format!("the {scheme}: URL has credentials in it");
            return Err(refuse(text).remedy(
                "take them out, and have them in the environment: URLs are printed and logged",
            ));
        }
        let word = cloud.bucket();
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '$');
        if bucket.is_empty() || !bucket.chars().all(fine) {
            let text = format!("the {scheme}: URL names no {word}, or none that can be");
            return Err(refuse(text).remedy(format!("write {scheme}://{word}/prefix")));
        }
        let prefix = prefix.trim_matches('/');
        let mut options = Self {
            cloud,
            bucket: bucket.into(),
            prefix: if prefix.is_empty() { PREFIX.into() } else { prefix.into() },
            endpoint: None,
            region: None,
            account: None,
            virtual_hosted: false,
            tls: Tls::new(),
            request_timeout: None,
            poll: None,
            poll_held: None,
            listing_age: None,
            timings: None,
            given: Vec::new(),
        };
        for option in options_of(query) {
            let (key, value) = option?;
            options.set(key, &value)?;
        }
        options.checked()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match (key, self.cloud) {
            ("endpoint", _) => self.endpoint = Some(value.trim_end_matches('/').into()),
            ("poll_ms", _) => self.poll = Some(millis(key, value)?),
            ("request_timeout_ms", _) => self.request_timeout = Some(millis(key, value)?),
            ("region", Cloud::S3) => self.region = Some(value.into()),
            ("virtual_hosted", Cloud::S3) => self.virtual_hosted = flag(key, value)?,
            ("account", Cloud::Azure) => self.account = Some(value.into()),
            _ if self.tls.set(key, value) => {}
            _ => {
                let mut known = [&COMMON[..], &Tls::KEYS].concat();
                known.extend(match self.cloud {
                    Cloud::S3 => &["region", "virtual_hosted"][..],
                    Cloud::Azure => &["account"],
                    Cloud::Gcs => &[],
                });
                // An option that is not known may be the name of a secret.
                let remedy =
                    format!("it knows {}; credentials belong in the environment", known.join(", "));
                return Err(unknown(self.cloud.scheme(), key, &known).remedy(remedy));
            }
        }
        Ok(())
    }

    /// Sets something of the cloud's own client, by the name it has in the
    /// environment but in small letters: `aws_access_key_id`,
    /// `azure_storage_account_key`, `google_service_account_key` … . The value
    /// is never printed.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.given.push((key.into(), value.into()));
        self
    }

    /// Takes the timings of the members that will use the store: how long a
    /// request may take, how often to look, and how far clocks may drift. What
    /// the URL says itself wins.
    pub fn settings(mut self, settings: &Settings) -> Self {
        self.timings = Some(settings.clone());
        self
    }

    /// How long a request may take. Default: as the settings say, else 5 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// How often to look for changes. Default: once in a ttl.
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = Some(every);
        self
    }

    /// How often to look at an election that has a holder, if not as often as
    /// at the others: the resignation of its leader is noticed that late.
    pub fn poll_held(mut self, every: Duration) -> Self {
        self.poll_held = Some(every);
        self
    }

    /// How old a list of members may be for telling a waiting candidate how many
    /// are before it. Default: as [`CasOptions`](tenure_cas::CasOptions) has it.
    pub fn listing_age(mut self, age: Duration) -> Self {
        self.listing_age = Some(age);
        self
    }

    /// Whose interface it is.
    #[must_use]
    pub fn cloud(&self) -> Cloud {
        self.cloud
    }

    /// The bucket or container.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// What the names of all objects begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Another prefix.
    pub fn at(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    pub(crate) fn timeout(&self) -> Duration {
        let from_settings = self.timings.as_ref().map(Settings::request_timeout);
        self.request_timeout.or(from_settings).unwrap_or(Duration::from_secs(5))
    }

    pub(crate) fn checked(self) -> Result<Self> {
        if let Some(poll) = self.poll {
            check_interval("poll interval of the object store", poll)?;
        }
        if let Some(timeout) = self.request_timeout {
            check_interval("request timeout of the object store", timeout)?;
        }
        let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=' | '/'));
        if let Some(odd) = self.prefix.chars().find(|c| odd(*c)) {
            return Err(refuse(format!("the prefix of the objects has a {odd:?}"))
                .remedy("use ASCII letters, digits, '-', '_', '=' and '/'"));
        }
        let known = |text: &String| text.starts_with("http://") || text.starts_with("https://");
        if self.endpoint.as_ref().is_some_and(|endpoint| !known(endpoint)) {
            return Err(refuse("the endpoint in the URL has no scheme")
                .remedy("write endpoint=https://host:port"));
        }
        if self.endpoint.as_ref().is_some_and(|endpoint| endpoint.contains('@')) {
            return Err(refuse("the endpoint in the URL has credentials in it")
                .remedy("take them out, and have them in the environment"));
        }
        Ok(self)
    }
}

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given: Vec<&str> = self.given.iter().map(|(key, _)| key.as_str()).collect();
        f.debug_struct("BucketOptions")
            .field("cloud", &self.cloud)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("account", &self.account)
            .field("request_timeout", &self.timeout())
            .field("poll", &self.poll)
            .field("given", &given)
            .finish_non_exhaustive()
    }
}

pub(crate) fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str) -> String {
        BucketOptions::from_url(url).unwrap_err().to_string()
    }

    #[test]
    fn a_url_sets_what_it_names() {
        let url = "s3://b.c/a/b/?endpoint=http%3A%2F%2F127.0.0.1:9/&region=r&poll_ms=250\
                   &virtual_hosted=1&request_timeout_ms=800&ca_file=/etc/ca.pem";
        let options = BucketOptions::from_url(url).unwrap();
        assert_eq!((options.bucket(), options.prefix()), ("b.c", "a/b"));
        assert_eq!(options.endpoint.as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(options.poll, Some(Duration::from_millis(250)));
        assert_eq!(options.timeout(), Duration::from_millis(800));
        assert!(options.virtual_hosted && options.region.as_deref() == Some("r"));
        let azure = BucketOptions::from_url("az://c?account=me").unwrap();
        assert_eq!((azure.prefix(), azure.account.as_deref()), ("tenure", Some("me")));
        let plain = BucketOptions::from_url("gs://b").unwrap();
        assert_eq!(plain.timeout(), Duration::from_secs(5));
        assert_eq!(plain.settings(&Settings::default()).timeout(), Duration::from_millis(2_500));
    }

    #[test]
    fn a_wrong_url_says_what_to_write() {
        assert!(said("s3:bucket").contains("s3://bucket/prefix"));
        assert!(said("az:///p").contains("names no container"));
        assert!(said("gs://b?region=x").contains("\"region\""));
        assert!(said("s3://b?account=x").contains("region, virtual_hosted"));
        assert!(said("s3://b?endpoint=host:1").contains("endpoint=https://"));
        assert!(said("s3://b/a%20b").contains("'%'"));
        assert!(said("s3://b?poll_ms=9").contains("10ms to one day"));
        assert!(said("s3://b?poll_ms=often").contains("whole number"));
    }

    /// A secret in a URL is refused, and not repeated.
    #[test]
    fn no_secret_is_taken_from_a_url_or_shown() {
        for url in [
            "s3://AKIA:hunter2@bucket/p",
            "s3://bucket?aws_secret_access_key=hunter2",
            "az://c?sas=hunter2",
            "s3://b?endpoint=http://u:hunter2@h",
        ] {
            assert!(!said(url).contains("hunter2"), "{}", said(url));
        }
        let shown = BucketOptions::from_url("s3://b").unwrap().with("aws_secret", "hunter2");
        assert!(!format!("{shown:?}").contains("hunter2"));
    }
}
