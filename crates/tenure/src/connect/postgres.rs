//! PostgreSQL: `postgres://user@host/database`.

use super::Backend;

pub(super) const BACKEND: Backend = Backend {
    schemes: &[
        ("postgres", "postgres://user@host/database"),
        ("postgresql", "postgresql://user@host/database"),
    ],
    feature: "postgres",
    here: true,
    #[cfg(feature = "postgres")]
    driver: Some(driver::DRIVER),
    #[cfg(not(feature = "postgres"))]
    driver: None,
};

/// PostgreSQL with options that no URL has.
#[cfg(feature = "postgres")]
pub mod options {
    pub use tenure_postgres::{PostgresOptions, SslMode};

    /// Options for a member on PostgreSQL with these options of the connection, such as a
    /// source of passwords. The store is opened on the member's own thread, as from a URL;
    /// one that an application opens itself and gives to
    /// [`Tenure::with_store`](crate::Tenure::with_store) is carried by the application's
    /// runtime, and is starved with it.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tenure::postgres::{self, PostgresOptions};
    ///
    /// # async fn iam_token() -> Result<String, std::io::Error> { Ok("short-lived".into()) }
    /// let options = PostgresOptions::from_url("postgres://app@db/app?sslmode=verify-full")?;
    /// let options = options.password_from(iam_token);
    /// let tenure = postgres::builder(options).namespace("billing").connect().await?;
    /// # drop(tenure); Ok(())
    /// # }
    /// ```
    pub fn builder(options: PostgresOptions) -> crate::Builder {
        crate::Builder::target(super::driver::target(options))
    }
}

#[cfg(feature = "postgres")]
mod driver {
    use async_trait::async_trait;
    use tenure_postgres::{PostgresOptions, PostgresStore};

    use super::super::{Driver, Opened, Opening, Target, url_error};
    use crate::Result;

    pub(super) const DRIVER: Driver =
        Driver { parse, schema: || Some(PostgresStore::schema_sql("tenure").into()) };

    #[derive(Debug)]
    struct Postgres {
        options: PostgresOptions,
        /// The URL says how long a request may take, so the settings do not.
        has_timeout: bool,
    }

    fn parse(url: &str) -> Result<Box<dyn Target>> {
        let options = PostgresOptions::from_url(url).map_err(url_error)?;
        Ok(Box::new(Postgres { options, has_timeout: url.contains("request_timeout_ms=") }))
    }

    /// How long a request may take is said by the settings.
    pub(super) fn target(options: PostgresOptions) -> Box<dyn Target> {
        Box::new(Postgres { options, has_timeout: false })
    }

    #[async_trait]
    impl Target for Postgres {
        async fn open(&self, opening: &Opening<'_>) -> Result<Opened> {
            let mut options = self.options.clone();
            if !self.has_timeout {
                options = options.request_timeout(opening.settings.request_timeout());
            }
            Ok(Opened::plain(PostgresStore::open(options).await?.shared()))
        }
    }
}
