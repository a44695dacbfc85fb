//! etcd: `etcd://host1,host2,host3/prefix`.

use super::Backend;

pub(super) const BACKEND: Backend = Backend {
    schemes: &[("etcd", "etcd://host1,host2,host3/prefix")],
    feature: "etcd",
    here: true,
    #[cfg(feature = "etcd")]
    driver: Some(driver::DRIVER),
    #[cfg(not(feature = "etcd"))]
    driver: None,
};

#[cfg(feature = "etcd")]
mod driver {
    use async_trait::async_trait;
    use tenure_etcd::{EtcdOptions, EtcdStore};

    use super::super::{Driver, Opened, Opening, Target, url_error};
    use crate::Result;
    use crate::time::Time;

    pub(super) const DRIVER: Driver = Driver { parse, schema: || None };

    #[derive(Debug)]
    struct Cluster {
        options: EtcdOptions,
    }

    fn parse(url: &str) -> Result<Box<dyn Target>> {
        let options = EtcdOptions::from_url(url).map_err(url_error)?;
        Ok(Box::new(Cluster { options }))
    }

    #[async_trait]
    impl Target for Cluster {
        async fn open(&self, opening: &Opening<'_>) -> Result<Opened> {
            let options = self.options.clone().settings(opening.settings);
            let store = match opening.time {
                Time::Boot => EtcdStore::open(options).await?,
                Time::Manual(clock) => EtcdStore::open_with(options, clock.clone()).await?,
            };
            Ok(Opened::plain(store.shared()))
        }
    }
}
