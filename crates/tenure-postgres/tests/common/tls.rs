//! Certificates of servers.

use std::path::Path;

use tenure_testkit::Authority;

use super::server::give_to_server;

/// Puts a certificate for these names into a server's folder.
pub fn sign(authority: &Authority, names: &str, into: &Path) {
    let (certificate, key) = authority.sign(names, into);
    give_to_server(&certificate);
    give_to_server(&key);
}
