//! Which names the server goes by, and which pages may ask it to change something.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, Method, StatusCode, header};

use crate::problem::{Answer, Problem};

/// The names that requests may be for.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Lower case, without a port.
    names: Vec<String>,
}

impl Hosts {
    /// The names of loopback, the addresses that are listened on, and those that were given.
    pub(crate) fn new(addresses: &[SocketAddr], given: &[String]) -> Self {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "[::1]"].map(String::from).to_vec();
        names.extend(addresses.iter().map(|address| match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        }));
        names.extend(given.iter().map(|name| name.to_ascii_lowercase()));
        Self { names }
    }

    fn knows(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        self.names.contains(&name)
    }

    /// Refuses a request for another host, and a change that another page asks for.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Answer<()> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = text(header::HOST).unwrap_or_default();
        if !host.is_empty() && !self.knows(host) {
            let title = "the request is for another host";
            let what =
                format!("this server does not go by the name {:?}", tenure::views::shown(host));
            let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, "other_host", title, what);
            return Err(problem.remedy("start the server with `--host NAME` for that name"));
        }
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        let site = text(header::HeaderName::from_static("sec-fetch-site"));
        let other_site = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        let other_origin = text(header::ORIGIN).is_some_and(|origin| {
            origin.split_once("://").is_none_or(|(_, origin)| !origin.eq_ignore_ascii_case(host))
        });
        if other_site || other_origin {
            return Err(Problem::forbidden("a page of another origin asked for a change")
                .remedy("open the dashboard at the server's own address"));
        }
        Ok(())
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        let address = "10.0.0.7:7070".parse().unwrap();
        Hosts::new(&[address], &["Tenure.example".into()])
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    /// A name that was rebound to our address reaches nothing.
    #[test]
    fn a_host_that_is_not_ours_is_refused() {
        let hosts = hosts();
        for host in ["localhost:7070", "[::1]:1", "127.0.0.1", "10.0.0.7:7070", "tenure.EXAMPLE"] {
            hosts.check(&Method::GET, &headers(&[("host", host)])).unwrap();
        }
        for host in ["evil.example", "evil.example:7070", "localhost.evil.example", "[::2]"] {
            let problem = hosts.check(&Method::GET, &headers(&[("host", host)])).unwrap_err();
            assert_eq!(problem.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
    }

    /// Another page may look (no answer is given to it without CORS), and change nothing.
    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        let hosts = hosts();
        let ask = |method: &Method, name: &'static str, value: &str| {
            hosts.check(method, &headers(&[("host", "localhost:7070"), (name, value)]))
        };
        ask(&Method::POST, "origin", "http://localhost:7070").unwrap();
        ask(&Method::POST, "sec-fetch-site", "same-origin").unwrap();
        ask(&Method::GET, "origin", "http://evil.example").unwrap();
        for origin in ["http://evil.example", "http://localhost:1", "null"] {
            assert!(ask(&Method::POST, "origin", origin).is_err(), "{origin}");
        }
        assert!(ask(&Method::POST, "sec-fetch-site", "cross-site").is_err());
        assert!(ask(&Method::DELETE, "sec-fetch-site", "same-site").is_err());
    }
}
