//! Object storage: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`.

use super::Backend;

pub(super) const BACKEND: Backend = Backend {
    schemes: &[
        ("s3", "s3://bucket/prefix"),
        ("gs", "gs://bucket/prefix"),
        ("az", "az://container/prefix"),
    ],
    feature: "object",
    here: true,
    #[cfg(feature = "object")]
    driver: Some(driver::DRIVER),
    #[cfg(not(feature = "object"))]
    driver: None,
};

#[cfg(feature = "object")]
mod driver {
    use async_trait::async_trait;
    use tenure_object::{BucketOptions, BucketStore};

    use super::super::{Driver, Opened, Opening, Target, url_error};
    use crate::Result;
    use crate::time::Time;

    pub(super) const DRIVER: Driver = Driver { parse, schema: || None };

    #[derive(Debug)]
    struct Bucket {
        options: BucketOptions,
    }

    fn parse(url: &str) -> Result<Box<dyn Target>> {
        let options = BucketOptions::from_url(url).map_err(url_error)?;
        Ok(Box::new(Bucket { options }))
    }

    #[async_trait]
    impl Target for Bucket {
        async fn open(&self, opening: &Opening<'_>) -> Result<Opened> {
            let options = self.options.clone().settings(opening.settings);
            let store = match opening.time {
                Time::Boot => BucketStore::open(options).await?,
                Time::Manual(clock) => BucketStore::open_with(options, clock.clone()).await?,
            };
            Ok(Opened::plain(store.shared()))
        }
    }
}
