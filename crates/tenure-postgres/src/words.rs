//! What a connection is told: by the URL, a service file and the environment, in
//! libpq's words and in its order. What the URL says goes before what the service says,
//! and that before the environment.
//!
//! No error repeats a value: it may be a password, or the rest of one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tenure_store::url::decode;
use tenure_store::{Error, ErrorKind, Result};

/// libpq's words that are understood here, each with the variable that gives it.
const KNOWN: [(&str, &str); 25] = [
    ("application_name", "PGAPPNAME"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("dbname", "PGDATABASE"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("keepalives", ""),
    ("keepalives_count", ""),
    ("keepalives_idle", ""),
    ("keepalives_interval", ""),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("options", "PGOPTIONS"),
    ("passfile", "PGPASSFILE"),
    ("password", "PGPASSWORD"),
    ("port", "PGPORT"),
    ("service", "PGSERVICE"),
    ("servicefile", "PGSERVICEFILE"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("tcp_user_timeout", ""),
    ("user", "PGUSER"),
];

/// What an environment may ask of libpq for safety's sake, and is not done here: it is
/// refused, not passed over. `None` stands for any value.
const NOT_DONE: [(&str, Option<&str>); 7] = [
    ("PGREQUIREAUTH", None),
    ("PGREQUIREPEER", None),
    ("PGSSLCRL", None),
    ("PGSSLCRLDIR", None),
    ("PGGSSENCMODE", Some("require")),
    ("PGSSLCERTMODE", Some("require")),
    ("PGSSLMINPROTOCOLVERSION", Some("TLSv1.3")),
];

/// Words of our own, which only a URL has.
const OWN: [&str; 6] = ["schema", "owner", "migrate", "listen", "poll_ms", "request_timeout_ms"];

/// Where a variable of the environment is looked up.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What was said, by word.
#[derive(Default)]
pub(crate) struct Words(BTreeMap<String, String>);

impl Words {
    /// All that is said: where two sources say it, by the first.
    pub(crate) fn gather(url: &str, environment: Environment<'_>) -> Result<Self> {
        let mut words = Self::of_url(url)?;
        words.add_service(environment)?;
        for (variable, asked) in NOT_DONE {
            let value = environment(variable).filter(|value| !value.is_empty());
            if value.is_some_and(|value| asked.is_none_or(|asked| asked == value)) {
                let text = format!("the environment asks for {variable}, which is not done here");
                return Err(Error::new(ErrorKind::Invalid, text)
                    .remedy(format!("unset {variable} for this program")));
            }
        }
        for (word, variable) in KNOWN.iter().filter(|(_, variable)| !variable.is_empty()) {
            if let Some(value) = environment(variable).filter(|value| !value.is_empty()) {
                words.add(word, value);
            }
        }
        Ok(words)
    }

    pub(crate) fn get(&self, word: &str) -> Option<&str> {
        self.0.get(word).map(String::as_str)
    }

    /// Adds what was not said so far.
    fn add(&mut self, word: &str, value: String) {
        self.0.entry(word.to_owned()).or_insert(value);
    }

    fn of_url(url: &str) -> Result<Self> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|it| url.strip_prefix(it));
        let rest = rest.ok_or_else(|| refuse("the PostgreSQL URL is not understood"))?;
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = base.split_once('/').unwrap_or((base, ""));
        // What stands before a stray @ may be a password.
        if !authority.contains('@') && (query.contains('@') || path.contains('@')) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the PostgreSQL URL has an @ among its options, or in its database, and none before",
            )
            .remedy("write an @ in an option, or in a password, as %40, and a / as %2F"));
        }
        let mut words = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            words.take_option(pair, query.contains('@'))?;
        }
        let (user, hosts) = authority.split_once('@').unwrap_or(("", authority));
        let (user, password) = user.split_once(':').map_or((user, None), |(u, p)| (u, Some(p)));
        let said = [("user", Some(user)), ("password", password), ("dbname", Some(path))];
        for (word, value) in said {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                words.add(word, decode(value)?);
            }
        }
        words.take_hosts(hosts)?;
        Ok(words)
    }

    fn take_option(&mut self, pair: &str, secret: bool) -> Result<()> {
        let (word, value) = pair.split_once('=').unwrap_or((pair, ""));
        // With an @ after the ?, what looks like an option may be the end of a password.
        let unknown = || {
            if secret || !pair.contains('=') {
                let text = "an option in the PostgreSQL URL is not known; is there a ? or an @ in \
                            the password?";
                return Error::new(ErrorKind::Invalid, text).remedy("write it as %3F or %40");
            }
            refuse(format!("the PostgreSQL URL is not understood: unknown option `{word}`"))
        };
        let value = decode(value)?;
        // As JDBC has it.
        let (word, value) = match (word, value.as_str()) {
            ("ssl", "true") => ("sslmode", "require".to_owned()),
            // As the driver calls it.
            ("keepalives_retries", _) => ("keepalives_count", value),
            _ => (word, value),
        };
        let known = KNOWN.iter().any(|(known, _)| *known == word) || OWN.contains(&word);
        if !known || !pair.contains('=') {
            return Err(unknown());
        }
        self.0.insert(word.to_owned(), value);
        Ok(())
    }

    /// `host:port,host:port`. A port that is not named is left to the later sources.
    fn take_hosts(&mut self, text: &str) -> Result<()> {
        let mut hosts = Vec::new();
        let mut ports = Vec::new();
        for chunk in text.split(',').filter(|_| !text.is_empty()) {
            let (host, port) = match chunk.strip_prefix('[') {
                Some(inner) => inner
                    .split_once(']')
                    .ok_or_else(|| refuse("a host in the PostgreSQL URL has a [ without a ]"))?,
                None => chunk.find(':').map_or((chunk, ""), |at| chunk.split_at(at)),
            };
            hosts.push(decode(host)?);
            ports.push(decode(port.strip_prefix(':').unwrap_or(port))?);
        }
        if !hosts.is_empty() {
            self.add("host", hosts.join(","));
        }
        if ports.iter().any(|port| !port.is_empty()) {
            self.add("port", ports.join(","));
        }
        Ok(())
    }

    /// What the service says that was named, if one was.
    fn add_service(&mut self, environment: Environment<'_>) -> Result<()> {
        let named = self.get("service").map(str::to_owned).or_else(|| environment("PGSERVICE"));
        let Some(service) = named.filter(|name| !name.is_empty()) else { return Ok(()) };
        let file = self.get("servicefile").map(str::to_owned);
        let file = file.or_else(|| environment("PGSERVICEFILE")).map(PathBuf::from);
        let of_user =
            || environment("HOME").map(|home| PathBuf::from(home).join(".pg_service.conf"));
        let system =
            environment("PGSYSCONFDIR").map(|dir| PathBuf::from(dir).join("pg_service.conf"));
        let looked: Vec<_> = file.or_else(of_user).into_iter().chain(system).collect();
        for path in &looked {
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            if self.take_service(&text, &service).map_err(|(line, why)| {
                let place = format!("{}:{line}", path.display());
                Error::new(ErrorKind::Invalid, format!("the service file {place} {why}"))
                    .remedy("write a word of a connection, an = and its value on each line")
            })? {
                return Ok(());
            }
        }
        let files: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
        let text =
            format!("the PostgreSQL service {service:?} is in none of: {}", files.join(", "));
        Err(Error::new(ErrorKind::Invalid, text)
            .remedy("name another in the URL or in PGSERVICE, or the file in PGSERVICEFILE"))
    }

    /// Adds what the section of that name says. Whether there is one; or the line that
    /// is wrong.
    fn take_service(&mut self, text: &str, service: &str) -> Result<bool, (usize, &'static str)> {
        let mut inside = false;
        let mut found = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                // The first section of that name is the one.
                inside = !found && name.strip_suffix(']') == Some(service);
                found |= inside;
                continue;
            }
            if !inside {
                continue;
            }
            let Some((word, value)) = line.split_once('=') else {
                return Err((number + 1, "has a line without ="));
            };
            let word = word.trim();
            if word.starts_with("service") || !KNOWN.iter().any(|(known, _)| *known == word) {
                return Err((number + 1, "has a word that is not known here"));
            }
            self.add(word, value.trim().to_owned());
        }
        Ok(found)
    }
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
        .remedy("write postgres://user@host:5432/database?sslmode=require")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P9: the URL goes before the service, the service before the environment.
    #[test]
    fn words_are_taken_in_libpqs_order() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("services");
        let text = "# ours\n[other]\nhost=no\n[it]\nhost=s\nport = 7\nuser=s\n[it]\ndbname=no\n";
        std::fs::write(&file, text).unwrap();
        let variables = |name: &str| match name {
            "PGSERVICE" => Some("it".to_owned()),
            "PGSERVICEFILE" => Some(file.display().to_string()),
            "PGHOST" | "PGUSER" | "PGDATABASE" => Some("e".to_owned()),
            "PGPASSWORD" => Some(String::new()),
            _ => None,
        };
        let words = Words::gather("postgres://u@/?connect_timeout=3", &variables).unwrap();
        let get = |word| words.get(word);
        assert_eq!(get("user"), Some("u"));
        assert_eq!(get("host"), Some("s"));
        assert_eq!(get("port"), Some("7"));
        assert_eq!(get("dbname"), Some("e"));
        assert_eq!(get("connect_timeout"), Some("3"));
        assert_eq!(get("password"), None, "an empty variable says nothing");
    }

    /// P9: what would make a connection safer is not passed over in silence.
    #[test]
    fn what_is_not_done_for_safety_is_refused() {
        let with = |name: &'static str, value: &'static str| {
            let environment = move |asked: &str| (asked == name).then(|| value.to_owned());
            Words::gather("postgres://h/d", &environment).map(drop).map_err(|e| e.to_string())
        };
        let said = with("PGREQUIREAUTH", "scram-sha-256").unwrap_err();
        assert!(said.contains("PGREQUIREAUTH"), "{said}");
        assert!(with("PGSSLCRL", "/etc/crl.pem").is_err());
        assert!(with("PGGSSENCMODE", "require").is_err());
        assert!(with("PGGSSENCMODE", "prefer").is_ok());
        assert!(with("PGSSLMINPROTOCOLVERSION", "TLSv1.2").is_ok());
        assert!(with("PGREQUIREAUTH", "").is_ok());
    }

    #[test]
    fn a_service_that_is_not_there_or_not_understood_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("services");
        let gather = |text: Option<&str>| {
            text.inspect(|text| std::fs::write(&file, text).unwrap());
            let url = format!("postgres://h/?service=it&servicefile={}", file.display());
            let gathered = Words::gather(&url, &|_| None);
            gathered.map(drop).map_err(|error| error.to_string())
        };
        assert!(gather(None).unwrap_err().contains("\"it\""));
        assert!(gather(Some("[other]\nhost=h\n")).unwrap_err().contains("services"));
        let odd = gather(Some("[it]\npassword hunter2\n")).unwrap_err();
        assert!(odd.contains("services:2") && !odd.contains("hunter2"), "{odd}");
        assert!(gather(Some("[it]\ncolour=red\n")).unwrap_err().contains("services:2"));
        assert!(gather(Some("[it]\nservice=it\n")).is_err(), "services do not nest");
        assert_eq!(gather(Some("[it]\nhost=h\n")), Ok(()));
    }

    #[test]
    fn hosts_ports_and_sockets_are_told_apart() {
        let of = |url: &str| {
            let words = Words::gather(url, &|_| None).unwrap();
            (
                words.get("host").unwrap_or("-").to_owned(),
                words.get("port").unwrap_or("-").to_owned(),
            )
        };
        let said = |host: &str, port: &str| (host.to_owned(), port.to_owned());
        assert_eq!(of("postgres:///d"), said("-", "-"));
        assert_eq!(of("postgres://h"), said("h", "-"));
        assert_eq!(of("postgres://a:1,b/d"), said("a,b", "1,"));
        assert_eq!(of("postgres://[::1]:5/d"), said("::1", "5"));
        assert_eq!(of("postgres://%2Frun%2Fpg:6/d"), said("/run/pg", "6"));
        assert_eq!(of("postgres:///d?host=/run/pg&port=7"), said("/run/pg", "7"));
        assert!(Words::gather("postgres://[::1/d", &|_| None).is_err());
        assert!(Words::gather("mysql://h/d", &|_| None).is_err());
    }
}
