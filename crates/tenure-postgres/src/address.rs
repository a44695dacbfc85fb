//! Where a server is: a host and a port, or a socket on this machine.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tenure_store::{Error, ErrorKind, Result};
use tokio_postgres::Config;

use crate::words::Words;

/// Where servers keep their sockets, unless the URL or the environment says otherwise: Debian's
/// place and PostgreSQL's own.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    at: Place,
    /// Where to connect to, if the name is not to be looked up.
    ip: Option<IpAddr>,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Host(String),
    /// A folder with a socket in it; whether it is the default.
    Socket(PathBuf, bool),
}

impl Address {
    /// All that are named, in their order; the usual socket if none is.
    pub(crate) fn all(words: &Words) -> Result<Vec<Self>> {
        let list = |word| words.get(word).map_or(Vec::new(), |text| text.split(',').collect());
        let hosts: Vec<&str> = list("host");
        let ips: Vec<&str> = list("hostaddr");
        let ports: Vec<&str> = list("port");
        let count = hosts.len().max(ips.len()).max(1);
        let fits = |many: &[&str]| many.is_empty() || many.len() == count;
        if !fits(&hosts) || !fits(&ips) || !(fits(&ports) || ports.len() == 1) {
            let text = format!(
                "{} hosts, {} addresses and {} ports are named for PostgreSQL",
                hosts.len(),
                ips.len(),
                ports.len()
            );
            return Err(Error::new(ErrorKind::Invalid, text)
                .remedy("name one port for all hosts, or one for each"));
        }
        (0..count)
            .map(|i| {
                let port = ports.get(i).or(ports.first()).copied().unwrap_or_default();
                let host = hosts.get(i).copied().unwrap_or_default();
                Self::one(host, ips.get(i).copied().unwrap_or_default(), port)
            })
            .collect()
    }

    fn one(host: &str, ip: &str, port: &str) -> Result<Self> {
        let refuse = |text: &str| {
            Error::new(ErrorKind::Invalid, text).remedy("write host:5432, or a whole address")
        };
        let port = if port.is_empty() { "5432" } else { port };
        let port = port.trim().parse().ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| refuse("a port of the PostgreSQL server is no port"))?;
        let ip = Some(ip).filter(|ip| !ip.is_empty()).map(str::parse::<IpAddr>).transpose();
        let ip = ip.map_err(|_| refuse("a hostaddr of the PostgreSQL server is no address"))?;
        let at = match (host, ip) {
            ("", Some(ip)) => Place::Host(ip.to_string()),
            ("", None) => {
                let there = SOCKETS.iter().find(|folder| Path::new(folder).is_dir());
                Place::Socket(there.unwrap_or(&SOCKETS[1]).into(), true)
            }
            (host, None) if host.starts_with('/') => Place::Socket(host.into(), false),
            (host, _) => Place::Host(host.to_owned()),
        };
        Ok(Self { at, ip, port })
    }

    pub(crate) fn is_socket(&self) -> bool {
        matches!(self.at, Place::Socket(..))
    }

    pub(crate) fn put_into(&self, config: &mut Config) {
        match &self.at {
            Place::Host(host) => config.host(host),
            Place::Socket(folder, _) => config.host_path(folder),
        };
        if let Some(ip) = self.ip {
            config.hostaddr(ip);
        }
        config.port(self.port);
    }

    /// Whether a password file means this one by `host`.
    pub(crate) fn is_called(&self, host: &str) -> bool {
        match &self.at {
            Place::Host(name) => name == host,
            Place::Socket(folder, usual) => {
                folder == Path::new(host) || *usual && host == "localhost"
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Place::Host(host) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            Place::Host(host) => write!(f, "{host}:{}", self.port),
            Place::Socket(folder, _) => write!(f, "{}/.s.PGSQL.{}", folder.display(), self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(url: &str) -> Result<String, String> {
        let words = Words::gather(url, &|_| None).map_err(|error| error.to_string())?;
        let all = Address::all(&words).map_err(|error| error.to_string())?;
        Ok(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn hosts_and_ports_go_together_as_they_are_named() {
        assert_eq!(all("postgres://a,b:7/d").unwrap(), "a:5432 b:7");
        assert_eq!(all("postgres:///d?host=a,/run/x&port=6").unwrap(), "a:6 /run/x/.s.PGSQL.6");
        assert_eq!(all("postgres://[::1]/d").unwrap(), "[::1]:5432");
        assert_eq!(all("postgres:///d?hostaddr=10.0.0.1").unwrap(), "10.0.0.1:5432");
        assert!(all("postgres:///d").unwrap().ends_with(".s.PGSQL.5432"));
        for wrong in [
            "postgres://a,b,c/d?port=1,2",
            "postgres://a/d?hostaddr=1.1.1.1,2.2.2.2",
            "postgres://a/d?hostaddr=a",
            "postgres://a:0/d",
            "postgres://a:65536/d",
            "postgres://a:port/d",
        ] {
            assert!(all(wrong).is_err(), "{wrong}");
        }
    }
}
