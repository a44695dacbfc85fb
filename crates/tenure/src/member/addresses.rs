//! The addresses of this host, as other hosts may reach it.

use std::net::{IpAddr, SocketAddr};

use tenure_core::MAX_ENDPOINTS;

use crate::{Error, Result};

/// Each usable address of this host with the port.
pub(crate) fn endpoints(port: u16) -> Result<Vec<String>> {
    let found = interfaces()
        .map_err(|source| Error::System { what: "asking for this host's addresses", source })?;
    Ok(with_port(found, port))
}

fn with_port(found: Vec<IpAddr>, port: u16) -> Vec<String> {
    let mut endpoints = Vec::new();
    for address in found.into_iter().filter(is_reachable) {
        let endpoint = SocketAddr::new(address, port).to_string();
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    endpoints.truncate(MAX_ENDPOINTS);
    endpoints
}

/// Whether another host may use it without knowing an interface of ours.
fn is_reachable(address: &IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(is_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

#[cfg(unix)]
fn interfaces() -> std::io::Result<Vec<IpAddr>> {
    use nix::net::if_::InterfaceFlags;

    let mut found = Vec::new();
    for interface in nix::ifaddrs::getifaddrs()? {
        let Some(address) = interface.address else { continue };
        if !interface.flags.contains(InterfaceFlags::IFF_UP) {
            continue;
        }
        if let Some(v4) = address.as_sockaddr_in() {
            found.push(IpAddr::V4(v4.ip()));
        } else if let Some(v6) = address.as_sockaddr_in6() {
            found.push(IpAddr::V6(v6.ip()));
        }
    }
    Ok(found)
}

#[cfg(not(unix))]
fn interfaces() -> std::io::Result<Vec<IpAddr>> {
    Err(std::io::Error::other("they are not known on this platform: name the endpoint yourself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another host cannot use, or may have itself, is left out; IPv6 has its brackets.
    #[test]
    fn only_what_another_host_may_use_is_published() {
        let all = [
            "127.0.0.1",
            "10.0.0.7",
            "169.254.3.4",
            "0.0.0.0",
            "224.0.0.1",
            "::1",
            "fe80::1",
            "2001:db8::7",
            "10.0.0.7",
        ];
        let all = all.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(with_port(all, 80), ["10.0.0.7:80", "[2001:db8::7]:80"]);
        let many = (0..100).map(|n| IpAddr::from([10, 0, 0, n])).collect();
        assert_eq!(with_port(many, 1).len(), MAX_ENDPOINTS);
    }

    /// The system answers, and a profile takes what it says.
    #[test]
    fn the_endpoints_of_this_host_can_be_published() {
        let found = endpoints(9000).unwrap();
        assert!(tenure_core::Profile::new(&found, b"").is_ok(), "{found:?}");
    }
}
