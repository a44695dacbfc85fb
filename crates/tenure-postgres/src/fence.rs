//! The fence: a stale leader's write is refused in its own transaction.

use tenure_core::{Namespace, Term, TermNumber};
use tenure_store::{Error, ErrorKind, FenceError, FenceIn};
use tokio_postgres::types::Type;

use crate::schema::put;

/// The SQLSTATE by which the function says that a term is over.
const OVER: &str = "TN001";
/// Where Tenure's schema is unless something else is said.
const SCHEMA: &str = "tenure";

/// Marks fences that are set in a PostgreSQL database; nobody has to name it.
#[derive(Clone, Copy, Debug)]
pub enum Postgres {}

/// A transaction, together with the schema that Tenure lives in.
#[derive(Debug)]
pub struct Fenced<'t, T> {
    transaction: &'t mut T,
    schema: String,
}

/// Says in which schema to look, where it is not called `tenure`:
/// `leadership.fence(&mut in_schema(&mut tx, "elections"))`.
pub fn in_schema<T>(transaction: &mut T, schema: impl Into<String>) -> Fenced<'_, T> {
    Fenced { transaction, schema: schema.into() }
}

fn call(schema: &str) -> String {
    put("SELECT {schema}.fence($1, $2, $3)", schema)
}

fn number(term: &Term) -> i64 {
    crate::rows::signed(term.number.get())
}

/// What a failed call means. Without a verdict of the function's own, nothing is
/// proven.
fn verdict(term: &Term, code: Option<&str>, detail: Option<&str>, said: String) -> FenceError {
    match code {
        Some(OVER) => FenceError::Superseded {
            election: term.election.clone(),
            number: term.number,
            newest: TermNumber::new(detail.and_then(|d| d.parse().ok()).unwrap_or(0)),
        },
        Some("40001" | "40P01" | "55P03") => FenceError::Store(
            Error::new(ErrorKind::Busy, "the fence met a newer state than the transaction's")
                .caused_by(said)
                .remedy("roll back and begin a new transaction"),
        ),
        Some("42883" | "3F000") => FenceError::Store(
            Error::new(ErrorKind::Foreign, "this database has no such fence")
                .caused_by(said)
                .remedy("fence in the database the elections are kept in; name its schema"),
        ),
        _ => FenceError::Store(
            Error::new(ErrorKind::Unreachable, "asking for the fence failed").caused_by(said),
        ),
    }
}

async fn by_tokio_postgres(
    transaction: &tokio_postgres::Transaction<'_>,
    schema: &str,
    ns: &Namespace,
    term: &Term,
) -> Result<(), FenceError> {
    let (ns, election, number) = (ns.as_str(), term.election.as_str(), number(term));
    let params = [
        (&ns as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
        (&election as _, Type::TEXT),
        (&number as _, Type::INT8),
    ];
    let asked = transaction.query_typed(&call(schema), &params).await;
    asked.map(drop).map_err(|error| {
        let db = error.as_db_error();
        let code = db.map(|db| db.code().code());
        verdict(term, code, db.and_then(|db| db.detail()), error.to_string())
    })
}

impl FenceIn<Postgres> for tokio_postgres::Transaction<'_> {
    async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
        by_tokio_postgres(self, SCHEMA, ns, term).await
    }
}

impl FenceIn<Postgres> for Fenced<'_, tokio_postgres::Transaction<'_>> {
    async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
        by_tokio_postgres(self.transaction, &self.schema, ns, term).await
    }
}

#[cfg(feature = "sqlx")]
mod by_sqlx {
    use sqlx::postgres::{PgConnection, PgDatabaseError};
    use sqlx::{Executor, Transaction};

    use super::{
        Error, ErrorKind, FenceError, FenceIn, Fenced, Namespace, Postgres, SCHEMA, Term, call,
        number, verdict,
    };

    async fn fence(
        connection: &mut PgConnection,
        schema: &str,
        ns: &Namespace,
        term: &Term,
    ) -> Result<(), FenceError> {
        let text = call(schema);
        let query =
            sqlx::query(&text).bind(ns.as_str()).bind(term.election.as_str()).bind(number(term));
        let Err(error) = connection.execute(query).await else { return Ok(()) };
        let db = error.as_database_error().and_then(|e| e.try_downcast_ref::<PgDatabaseError>());
        let (code, detail) = (db.map(PgDatabaseError::code), db.and_then(PgDatabaseError::detail));
        Err(verdict(term, code, detail, error.to_string()))
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
        async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
            fence(self, SCHEMA, ns, term).await
        }
    }

    impl FenceIn<Postgres> for Fenced<'_, Transaction<'_, sqlx::Postgres>> {
        async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
            fence(self.transaction, &self.schema, ns, term).await
        }
    }

    impl FenceIn<Postgres> for Fenced<'_, PgConnection> {
        async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
            fence(self.transaction, &self.schema, ns, term).await?;
            still_holds(self.transaction).await
        }
    }

    impl FenceIn<Postgres> for PgConnection {
        async fn fence_in(&mut self, ns: &Namespace, term: &Term) -> Result<(), FenceError> {
            fence(self, SCHEMA, ns, term).await?;
            still_holds(self).await
        }
    }
}
