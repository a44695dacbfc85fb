//! The whole suite once more, for a role that may call the verbs and nothing else. The
//! owner of the schema says some of them in fewer words; this is what all others say.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use common::{LET_IN, Place, url};
use tenure_conformance::Harness;
use tenure_postgres::PostgresOptions;
use tenure_store::{Clock, SharedStore};
use tokio::sync::OnceCell;

struct Guest {
    place: Place,
    let_in: OnceCell<()>,
}

#[async_trait]
impl Harness for Guest {
    async fn open(&self) -> SharedStore {
        let let_in = || async {
            // The owner installs the schema.
            drop(Harness::open(&self.place).await);
            self.place.sql(LET_IN).await;
        };
        self.let_in.get_or_init(let_in).await;
        let its_url = url().replace("postgres@", "tenure_guest@");
        let options = PostgresOptions::from_url(&its_url).unwrap().schema(&self.place.schema);
        self.place.open_with(options.migrate(false)).await.shared()
    }

    async fn pass(&self, time: Duration) {
        self.place.pass(time).await;
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.place.clock()
    }

    fn unit(&self) -> Duration {
        self.place.unit()
    }

    fn journal_bound(&self) -> Option<usize> {
        self.place.journal_bound()
    }
}

fn guest() -> impl Harness {
    Guest { place: Place::new(), let_in: OnceCell::new() }
}

tenure_conformance::suite!(guest());
