//! Which names the server goes by, and which pages may ask it to change something.

use std::net::IpAddr;

use http::{HeaderMap, Method, StatusCode, header};

use crate::problem::{Answer, Problem};

/// The names that requests may be for.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Lower case, without a port.
    names: Vec<String>,
}

impl Hosts {
    /// The name of loopback, and those that were given.
    pub(crate) fn new(given: &[String]) -> Self {
        let names = given.iter().map(|name| name.to_ascii_lowercase());
        Self { names: std::iter::once("localhost".into()).chain(names).collect() }
    }

    /// An address is known, whichever it is: a page cannot have one rebound to another, and a
    /// server that listens everywhere is asked by addresses that it does not know, as by a kubelet.
    fn knows(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        let plain = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        plain.unwrap_or(&name).parse::<IpAddr>().is_ok() || self.names.contains(&name)
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
        Hosts::new(&["Tenure.example".into()])
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    /// A name that was rebound to our address reaches nothing. An address cannot be rebound: the
    /// kubelet and Prometheus come by one that a server that listens everywhere does not know.
    #[test]
    fn a_host_that_is_not_ours_is_refused() {
        let hosts = hosts();
        for host in
            ["localhost:7070", "[::1]:1", "127.0.0.1", "10.0.0.7:7070", "tenure.EXAMPLE", "[::2]:1"]
        {
            hosts.check(&Method::GET, &headers(&[("host", host)])).unwrap();
        }
        for host in [
            "evil.example",
            "evil.example:7070",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "2130706433",
            "0x7f.1",
            "[::1",
            "localhost:7070:7070",
        ] {
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
