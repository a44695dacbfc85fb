//! Whose schema it is. The owner of a function, and a role that may replace it, decides
//! what runs with the rights of those who call it: so that is found out before
//! anything in the schema is called or installed.

use tenure_store::{Error, ErrorKind, Result};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::error::{self, Effect};
use crate::options::PostgresOptions;

/// Refuses a schema of an owner that the role of this session has no reason to trust.
/// A schema that is not there has no owner. The rules stand in `sql/owners.sql`.
pub(crate) async fn check(client: &Client, options: &PostgresOptions) -> Result<()> {
    let sql = include_str!("sql/owners.sql");
    let owner = options.owner.as_deref();
    let params = [(&options.schema as _, Type::TEXT), (&owner as _, Type::TEXT)];
    let failed = |e| error::of_request("asking whose the schema is", Effect::None, e).0;
    let rows = client.query_typed(sql, &params).await.map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(()) };
    let text = |column: &str| row.try_get::<_, String>(column).unwrap_or_default();
    let [what, whose, role, schema] = [text("what"), text("whose"), text("role"), text("owner")];
    let message = format!(
        "{what} in PostgreSQL is {whose}'s, whom the role {role:?} has no reason to trust: what is \
         called there runs with this role's rights"
    );
    let remedy = if owner.is_some() {
        format!("nothing was called. Name the owner that the URL means: owner={schema}")
    } else {
        format!(
            "nothing was called. If {whose} is to own it, connect as {schema} or as a role without \
             rights of its own that it let in with grant_to, or say so in the URL: owner={schema}. \
             If not, let its owner or a superuser drop it"
        )
    };
    Err(Error::new(ErrorKind::Denied, message).remedy(remedy))
}
