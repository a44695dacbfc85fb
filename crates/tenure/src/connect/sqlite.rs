//! SQLite: `sqlite:/path/to/file.db`.

use super::Backend;

pub(super) const BACKEND: Backend = Backend {
    schemes: &[("sqlite", "sqlite:/var/lib/app/tenure.db")],
    feature: "sqlite",
    here: cfg!(target_os = "linux"),
    #[cfg(all(feature = "sqlite", target_os = "linux"))]
    driver: Some(driver::DRIVER),
    #[cfg(not(all(feature = "sqlite", target_os = "linux")))]
    driver: None,
};

#[cfg(all(feature = "sqlite", target_os = "linux"))]
mod driver {
    use std::path::PathBuf;
    use std::sync::Arc;

    use async_trait::async_trait;
    use tenure_sqlite::{SCHEMA, SqliteOptions, SqliteStore};

    use super::super::{Driver, LivenessLocks, Opened, Opening, Target, url_error};
    use crate::Result;

    pub(super) const DRIVER: Driver = Driver { parse, schema: || Some(SCHEMA.into()) };

    #[derive(Debug)]
    struct Sqlite {
        path: PathBuf,
        options: SqliteOptions,
    }

    fn parse(url: &str) -> Result<Box<dyn Target>> {
        let (path, options) = SqliteOptions::from_url(url).map_err(url_error)?;
        Ok(Box::new(Sqlite { path, options }))
    }

    #[async_trait]
    impl Target for Sqlite {
        async fn open(&self, opening: &Opening<'_>) -> Result<Opened> {
            let settings = opening.settings;
            let options = self.options.clone().drift_ppm(settings.drift_ppm());
            let options = options.request_timeout(settings.request_timeout());
            let options = options.read_only(opening.read_only).prove_death(opening.prove_death);
            let store = SqliteStore::open(&self.path, options).await?;
            let store = Arc::new(store);
            // Weak: a handle that outlives its member must not keep the file open.
            let found = Arc::downgrade(&store);
            let find = move |life| found.upgrade()?.liveness_lock(life);
            Ok(Opened { store, locks: LivenessLocks(Some(Arc::new(find))) })
        }
    }
}
