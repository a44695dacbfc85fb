//! Where histories run: a schema, its clients, and its functions, which can be broken.

use tenure_postgres::PostgresStore;
use tokio_postgres::Client;

use crate::common::checks::Spot;
use crate::common::sound::unsound;

/// A schema of its own for one history after the other.
pub struct Place {
    owner: PostgresStore,
    /// Of a role that may call the verbs alone: it says some of them in other words.
    guest: PostgresStore,
    admin: Client,
    spot: Spot,
}

impl Place {
    pub async fn new(
        owner: PostgresStore,
        guest: PostgresStore,
        admin: Client,
        spot: Spot,
    ) -> Self {
        let place = Self { owner, guest, admin, spot };
        place.sql("CREATE TEMP TABLE kept AS TABLE {s}.settings").await;
        place
    }

    /// What does not hold of the tables.
    pub async fn unsound(&self) -> Vec<String> {
        unsound(&self.admin, &self.spot.schema).await
    }

    pub fn spot(&self) -> Spot {
        self.spot.clone()
    }

    /// Every fourth history is the guest's.
    pub fn store(&self, seed: u64) -> &PostgresStore {
        if seed % 4 == 3 { &self.guest } else { &self.owner }
    }

    /// What a broken function may have left behind is as it was.
    pub async fn mend(&self) {
        self.sql("DELETE FROM {s}.settings; INSERT INTO {s}.settings TABLE kept").await;
    }

    /// A function's body.
    pub async fn body(&self, function: &str) -> String {
        let of = "SELECT p.prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                  WHERE n.nspname = $1 AND p.proname = $2";
        self.admin.query_one(of, &[&self.spot.schema, &function]).await.unwrap().get(0)
    }

    /// A text of the crate's, with the schema's name put in.
    pub fn put(&self, text: &str) -> String {
        let schema = &self.spot.schema;
        text.replace("{schema}", &format!("\"{schema}\""))
            .replace("{channel}", &format!("'{schema}'"))
    }

    /// Gives a function another body.
    pub async fn replace(&self, function: &str, body: &str) -> Result<(), tokio_postgres::Error> {
        let of = "SELECT replace(pg_get_functiondef(p.oid), p.prosrc, $3) FROM pg_proc p \
                  JOIN pg_namespace n ON n.oid = p.pronamespace \
                  WHERE n.nspname = $1 AND p.proname = $2";
        let made = self.admin.query_one(of, &[&self.spot.schema, &function, &body]).await?;
        let made: String = made.get(0);
        let schema = &self.spot.schema;
        let text = format!("SET search_path = \"{schema}\", pg_temp; {made}; RESET search_path");
        self.admin.batch_execute(&text).await
    }

    pub async fn sql(&self, text: &str) {
        let text = text.replace("{s}", &self.spot.schema);
        self.admin.batch_execute(&text).await.unwrap();
    }
}
