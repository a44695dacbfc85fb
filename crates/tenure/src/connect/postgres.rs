//! PostgreSQL: `postgres://user@host/database`.

use super::Backend;

pub(super) const BACKEND: Backend = Backend {
    schemes: &[
        ("postgres", "postgres://user@host/database"),
        ("postgresql", "postgresql://user@host/database"),
    ],
    feature: "postgres",
    #[cfg(feature = "postgres")]
    driver: Some(driver::DRIVER),
    #[cfg(not(feature = "postgres"))]
    driver: None,
};

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
