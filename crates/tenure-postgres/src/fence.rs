//! The fence: a stale leader's write is refused in its own transaction.

use tenure_store::{Error, ErrorKind, FenceError, FenceIn, Fenced};
use tokio_postgres::types::Type;

use crate::KIND;
use crate::schema::put;

/// The SQLSTATE by which the function says that a term or a binding is over.
const OVER: &str = "TN001";
/// The SQLSTATE by which the function says that it is another store's.
const STRANGER: &str = "TN002";

/// Marks fences that are set in a PostgreSQL database; callers need not name it.
#[derive(Clone, Copy, Debug)]
pub enum Postgres {}

/// What to ask, of the schema that the term or the binding was given out in and no other.
struct Question<'a> {
    fenced: Fenced<'a>,
    call: String,
    number: i64,
    store: String,
    life: String,
}

impl<'a> Question<'a> {
    /// Refuses at once what no PostgreSQL database ever gave out.
    fn about(fenced: Fenced<'a>) -> Result<Self, FenceError> {
        let store = fenced.store();
        let (KIND, Some(id), Some(schema)) = (store.kind, store.id, &store.schema) else {
            return Err(fenced.stranger("a PostgreSQL database"));
        };
        // The uuids as text: a driver has a uuid of its own only where it was asked to.
        let call = match fenced {
            Fenced::Term(_) => "SELECT {schema}.fence($1, $2, $3, $4::text::uuid, $5::text::uuid)",
            Fenced::Name(_) => {
                "SELECT {schema}.fence_name($1, $2, $3, $4::text::uuid, $5::text::uuid)"
            }
        };
        Ok(Self {
            fenced,
            call: put(call, schema),
            number: crate::rows::signed(fenced.number()),
            store: id.to_string(),
            life: fenced.life().to_string(),
        })
    }

    /// What a failed call means. Without a verdict of the function's own, nothing is
    /// proven.
    fn verdict(&self, code: Option<&str>, detail: Option<&str>, said: String) -> FenceError {
        match code {
            Some(OVER) => self.fenced.over(detail.and_then(|d| d.parse().ok()).unwrap_or(0)),
            Some(STRANGER) => self.fenced.stranger(detail.unwrap_or("another store")),
            Some("40001" | "40P01" | "55P03") => FenceError::Store(
                Error::new(ErrorKind::Busy, "the fence met a newer state than the transaction's")
                    .caused_by(said)
                    .remedy("roll back and begin a new transaction"),
            ),
            Some("42883" | "3F000") => {
                let schema = self.fenced.store().schema.as_deref().unwrap_or_default();
                self.fenced.stranger(format!("a database without Tenure's schema {schema:?}"))
            }
            _ => FenceError::Store(
                Error::new(ErrorKind::Unreachable, "asking for the fence failed").caused_by(said),
            ),
        }
    }
}

impl FenceIn<Postgres> for tokio_postgres::Transaction<'_> {
    async fn fence_in(&mut self, fenced: Fenced<'_>) -> Result<(), FenceError> {
        let asked = Question::about(fenced)?;
        let ns = fenced.ns().as_str();
        let subject = fenced.subject();
        let params = [
            (&ns as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
            (&subject as _, Type::TEXT),
            (&asked.number as _, Type::INT8),
            (&asked.store as _, Type::TEXT),
            (&asked.life as _, Type::TEXT),
        ];
        let answer = self.query_typed(&asked.call, &params).await;
        answer.map(drop).map_err(|error| {
            let db = error.as_db_error();
            let code = db.map(|db| db.code().code());
            asked.verdict(code, db.and_then(|db| db.detail()), error.to_string())
        })
    }
}

#[cfg(feature = "sqlx")]
mod by_sqlx {
    use sqlx::postgres::{PgConnection, PgDatabaseError};
    use sqlx::{Executor, Transaction};

    use super::{Error, ErrorKind, FenceError, FenceIn, Fenced, Postgres, Question};

    async fn fence(connection: &mut PgConnection, fenced: Fenced<'_>) -> Result<(), FenceError> {
        let asked = Question::about(fenced)?;
        let query = sqlx::query(&asked.call)
            .bind(fenced.ns().as_str())
            .bind(fenced.subject())
            .bind(asked.number)
            .bind(&asked.store)
            .bind(&asked.life);
        let Err(error) = connection.execute(query).await else { return Ok(()) };
        let db = error.as_database_error().and_then(|e| e.try_downcast_ref::<PgDatabaseError>());
        let code = db.map(PgDatabaseError::code);
        Err(asked.verdict(code, db.and_then(PgDatabaseError::detail), error.to_string()))
    }

    /// Whether the fence that was just set still holds. Its lock gave the
    /// transaction an id; outside of one, that transaction is over by now.
    async fn still_holds(connection: &mut PgConnection) -> Result<(), FenceError> {
        let asked = sqlx::query_scalar("SELECT pg_current_xact_id_if_assigned() IS NOT NULL");
        let open: Result<bool, _> = asked.fetch_one(connection).await;
        match open {
            Ok(true) => Ok(()),
            Ok(false) => Err(FenceError::Store(
                Error::new(ErrorKind::Invalid, "the fence needs an open transaction")
                    .remedy("begin one before, and write inside it"),
            )),
            Err(error) => Err(FenceError::Store(
                Error::new(ErrorKind::Unreachable, "asking for the fence failed")
                    .caused_by(error.to_string()),
            )),
        }
    }

    impl FenceIn<Postgres> for Transaction<'_, sqlx::Postgres> {
        async fn fence_in(&mut self, fenced: Fenced<'_>) -> Result<(), FenceError> {
            fence(self, fenced).await
        }
    }

    impl FenceIn<Postgres> for PgConnection {
        async fn fence_in(&mut self, fenced: Fenced<'_>) -> Result<(), FenceError> {
            fence(self, fenced).await?;
            still_holds(self).await
        }
    }
}
