//! Elections on a service of one's own that has compare-and-swap:
//! `cargo run -p tenure-object --example own_register`.

#![allow(clippy::print_stdout, missing_docs)]

mod register;
mod server;

use std::sync::Arc;

use tenure::{Attempt, Tenure};
use tenure_cas::{CasOptions, CasStore};
use tenure_store::BootClock;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = format!("http://{}", server::serve().await?);
    let mut leaders = Vec::new();
    for name in ["anna", "berta"] {
        let register = register::HttpRegister { client: client()?, base: base.clone() };
        let store = CasStore::new(Arc::new(register), Arc::new(BootClock), CasOptions::default())?;
        let tenure = Tenure::with_store(Arc::new(store)).id(name).connect().await?;
        match tenure.election("nightly").try_campaign().await? {
            Attempt::Elected(leadership) => {
                println!("{name} leads with term {}", leadership.token());
                leaders.push((tenure, leadership));
            }
            other => {
                let leader = other.leader().map(|holder| holder.member.id.to_string());
                println!("{name} does not lead: {} does", leader.unwrap_or("no member".into()));
            }
        }
    }
    Ok(())
}

/// With reqwest's default features `Client::new()` will do. This workspace builds
/// it without a provider of cryptography, and names one here.
fn client() -> Result<reqwest::Client, Box<dyn std::error::Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls).build()?)
}
