//! What a member publishes as an endpoint, and whether a channel may connect to it.

use http::uri::{Authority, Uri};

/// The address of an endpoint, without a scheme: `host:port`, `[::1]:port`. A scheme is allowed
/// and has to be the channel's own: what is published decides nothing about TLS.
pub(crate) fn uri(endpoint: &str, tls: bool) -> Result<Uri, String> {
    let wanted = if tls { "https" } else { "http" };
    let address = match endpoint.split_once("://") {
        None => endpoint,
        Some((scheme, address)) if scheme.eq_ignore_ascii_case(wanted) => address,
        Some((scheme, _)) if tls && scheme.eq_ignore_ascii_case("http") => {
            return Err(format!(
                "the endpoint {endpoint:?} is plaintext and this channel has TLS, which it does \
                 not give up: publish host:port"
            ));
        }
        Some((scheme, _)) => {
            return Err(format!(
                "the endpoint {endpoint:?} has the scheme {scheme:?} and this channel speaks \
                 {wanted}: publish host:port, and give the channel its TLS"
            ));
        }
    };
    let refused = |why: &str| {
        format!("the endpoint {endpoint:?} is no address ({why}): publish host:port or [ipv6]:port")
    };
    let address = address.strip_suffix('/').unwrap_or(address);
    let authority: Authority = address.parse().map_err(|_| refused("it cannot be read"))?;
    if authority.as_str().contains('@') {
        return Err(refused("it names a user"));
    }
    if authority.host().is_empty() {
        return Err(refused("it has no host"));
    }
    match authority.port_u16() {
        None | Some(0) => return Err(refused("it has no port")),
        Some(_) => {}
    }
    let uri = Uri::builder().scheme(wanted).authority(authority).path_and_query("/").build();
    uri.map_err(|error| refused(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_the_scheme_of_the_channel() {
        for endpoint in
            ["10.0.0.7:80", "[::1]:80", "db.example.org:80", "http://h:80", "http://h:80/"]
        {
            assert_eq!(uri(endpoint, false).unwrap().scheme_str(), Some("http"), "{endpoint}");
        }
        assert_eq!(uri("10.0.0.7:443", true).unwrap().to_string(), "https://10.0.0.7:443/");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        let long = "x".repeat(300);
        for endpoint in [
            "",
            "nowhere",
            "10.0.0.7",
            "10.0.0.7:0",
            "10.0.0.7:99999",
            ":80",
            "a b:80",
            "h:80/path",
            "user@h:80",
            "::1:80",
            "http://",
            "unix:/run/x",
            "[::1",
            "h:80?x=1",
            "h:x",
            &long,
        ] {
            let why = uri(endpoint, false).unwrap_err();
            assert!(why.contains("publish host:port"), "{endpoint}: {why}");
        }
    }

    /// TLS is the channel's to decide: no store and no hint can take it away, nor add it.
    #[test]
    fn a_scheme_that_is_not_the_channels_is_refused() {
        assert!(uri("http://10.0.0.7:80", true).unwrap_err().contains("does not give up"));
        assert!(uri("HTTP://10.0.0.7:80", true).unwrap_err().contains("does not give up"));
        assert!(
            uri("https://10.0.0.7:80", false).unwrap_err().contains("give the channel its TLS")
        );
        assert!(uri("ftp://10.0.0.7:80", true).is_err());
    }
}
