//! Where a password comes from that is asked for at every connection.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tenure_store::{Error, ErrorKind, Result};

/// What an application's own source of passwords may fail with.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Asked = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

/// The application's own source of passwords.
#[derive(Clone)]
pub(crate) struct PasswordSource(Arc<dyn Fn() -> Asked + Send + Sync>);

impl PasswordSource {
    pub(crate) fn new<F, Fut, E>(ask: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Arc::new(move || {
            let asked = ask();
            Box::pin(async move { asked.await.map_err(Into::into) })
        }))
    }

    /// A password for one connection. Nothing was sent yet, so that nothing was applied.
    pub(crate) async fn ask(&self) -> Result<String> {
        self.0().await.map_err(|error| {
            let message = format!("the application gave no password for PostgreSQL: {error}");
            Error::new(ErrorKind::Unreachable, message)
                .remedy("it is asked again; check where the program has its passwords from")
        })
    }
}

impl fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordSource")
    }
}
