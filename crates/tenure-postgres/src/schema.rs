//! The schema: its text, its version, and how it gets into a database.

use tenure_store::{Error, ErrorKind, Identity, Result};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::options::PostgresOptions;
use crate::{KIND, error, owners};

/// The version of the schema this program speaks.
pub const VERSION: i32 = 1;

/// One step from the version before to the next.
struct Migration {
    to: i32,
    texts: &'static [&'static str],
}

/// In order, without gaps. A text that was released is never changed.
const MIGRATIONS: &[Migration] = &[Migration {
    to: 1,
    texts: &[
        include_str!("sql/tables.sql"),
        include_str!("sql/names.sql"),
        include_str!("sql/inner.sql"),
        include_str!("sql/era.sql"),
        include_str!("sql/life.sql"),
        include_str!("sql/read.sql"),
        include_str!("sql/bid.sql"),
        include_str!("sql/claim.sql"),
        include_str!("sql/judge.sql"),
        include_str!("sql/bind.sql"),
        include_str!("sql/named.sql"),
        include_str!("sql/amend.sql"),
        include_str!("sql/one_call.sql"),
        include_str!("sql/purge.sql"),
        include_str!("sql/fence_name.sql"),
        include_str!("sql/fence.sql"),
    ],
}];

/// A name as SQL writes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL writes it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What a verb's statements are planned by.
///
/// They find everything by its key, one bid or a thousand, and the server is
/// told to look no other way: a plan is made once for a session, and one made
/// for an empty table would read it from end to end, and go on doing so when the
/// table has grown. A plan made anew for each call would cost ten times the
/// call. What is switched off counts as very expensive, which would wake the
/// compiler (jit). See `_items` in `inner.sql` for the other half.
const PLANNED: [&str; 4] = [
    "SET search_path = {schema}, pg_temp",
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET jit = off",
];

/// SQL with the schema's name put in.
pub(crate) fn put(text: &str, schema: &str) -> String {
    let text = text.replace("{planned}", &PLANNED.join(" "));
    let text = text.replace("{look}", include_str!("sql/look.sql").trim_end());
    text.replace("{schema}", &quoted(schema)).replace("{channel}", &literal(schema))
}

/// Asks what this role may do besides calling the verbs.
pub(crate) fn rights(schema: &str) -> String {
    put(include_str!("sql/rights.sql"), schema)
}

/// Sets a session up as a verb is, for what a verb is made of.
pub(crate) fn planned(schema: &str) -> String {
    put(&PLANNED.join("; "), schema)
}

/// Everything to do to get from `version` to ours.
fn steps_from(version: i32, schema: &str) -> String {
    // Functions that inherit their callers' search_path are checked by this one.
    let mut text = put("SET LOCAL search_path = {schema}, pg_temp;\n", schema);
    for step in MIGRATIONS.iter().filter(|step| step.to > version) {
        for part in step.texts {
            text += &put(part, schema);
            text.push('\n');
        }
        text += &format!("UPDATE {}.settings SET version = {};\n", quoted(schema), step.to);
    }
    text
}

/// The text for those who apply it by hand, to an empty database.
pub(crate) fn whole(schema: &str) -> String {
    format!(
        "-- Tenure's schema, version {VERSION}. Apply it once, as the role that is to own it.\n\
         -- Let other roles take part with: SELECT {name}.grant_to('role');\n\
         BEGIN;\nCREATE SCHEMA {name};\n{steps}COMMIT;\n",
        name = quoted(schema),
        steps = steps_from(0, schema),
    )
}

/// Makes sure that the schema is there and is one that we speak. Whose it is was looked
/// at when the session was made.
pub(crate) async fn ensure(client: &Client, options: &PostgresOptions) -> Result<()> {
    let schema = &options.schema;
    match installed(client, schema).await? {
        Some(VERSION) => return Ok(()),
        Some(newer) if newer > VERSION => return Err(too_new(schema, newer)),
        found if !options.migrate => {
            let found = found.map_or("missing".into(), |v| format!("version {v}"));
            let message = format!("the schema {schema:?} is {found}, and migrate is off");
            return Err(Error::new(ErrorKind::Foreign, message)
                .remedy("apply the text of `tenure schema postgres`, or turn migrate on"));
        }
        _ => {}
    }
    upgrade(client, options).await
}

/// Installs what is missing. Any number of programs may do so at once: they
/// take turns, and all but the first find nothing left to do (C33).
async fn upgrade(client: &Client, options: &PostgresOptions) -> Result<()> {
    let failed = |error| error::of_request("installing the schema", error::Effect::None, error).0;
    // Keeps those who install apart until the transaction ends.
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; \
         SELECT pg_advisory_xact_lock(hashtextextended({}, 7469))",
        literal(&format!("tenure schema {}", options.schema))
    );
    client.batch_execute(&begin).await.map_err(failed)?;
    let done = upgrade_locked(client, options).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await.map_err(failed)?;
    done
}

async fn upgrade_locked(client: &Client, options: &PostgresOptions) -> Result<()> {
    let schema = &options.schema;
    let failed = |error| error::of_request("installing the schema", error::Effect::None, error).0;
    // Asked of the catalogue: a failed call would spoil the transaction.
    let known = format!("SELECT to_regprocedure({})::text", literal(&version_call(schema)));
    let known = client.simple_query(&known).await.map_err(failed)?;
    let known = known.iter().any(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).is_some(),
        _ => false,
    });
    let version = if known { installed(client, schema).await?.unwrap_or(0) } else { 0 };
    if version > VERSION {
        return Err(too_new(schema, version));
    }
    if version == VERSION {
        return Ok(());
    }
    let create = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema));
    if version == 0 {
        client.batch_execute(&create).await.map_err(|error| not_created(schema, error))?;
    }
    // Another process may have made it since we looked.
    owners::check(client, options).await?;
    client.batch_execute(&steps_from(version, schema)).await.map_err(failed)
}

fn not_created(schema: &str, error: tokio_postgres::Error) -> Error {
    let denied = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
    let said = error::of_request("creating the schema", error::Effect::None, error).0;
    if !denied {
        return said;
    }
    said.remedy(format!(
        "the schema {schema:?} is missing, and this role may not create it: let one that may apply \
         the text of `tenure schema postgres`, or run: GRANT CREATE ON DATABASE … TO this_role"
    ))
}

fn version_call(schema: &str) -> String {
    format!("{}.version()", quoted(schema))
}

/// The version that is installed; `None` if there is none.
async fn installed(client: &Client, schema: &str) -> Result<Option<i32>> {
    let asked = client.simple_query(&format!("SELECT {}", version_call(schema))).await;
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => {
            let doing = "asking for the schema's version";
            return Err(error::of_request(doing, error::Effect::None, error).0);
        }
    };
    let version = rows.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    version.map(Some).ok_or_else(|| error::damaged("no version of its schema"))
}

/// Which store this is: the number that its installation drew.
pub(crate) async fn identity(client: &Client, schema: &str) -> Result<Identity> {
    let ask = put("SELECT {schema}.store_id(), current_database()", schema);
    let asked = client.simple_query(&ask).await;
    let rows = asked.map_err(|error| {
        error::of_request("asking which store this is", error::Effect::None, error).0
    })?;
    let found = rows.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => {
            Some((row.get(0)?.parse().ok()?, row.get(1)?.to_owned()))
        }
        _ => None,
    });
    let (id, database) = found.ok_or_else(|| error::damaged("no number of its own"))?;
    Ok(Identity::new(KIND, id, format!("database {database:?}")).in_schema(schema))
}

fn is_missing(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::INVALID_SCHEMA_NAME) || code == Some(&SqlState::UNDEFINED_FUNCTION)
}

fn too_new(schema: &str, version: i32) -> Error {
    let message = format!(
        "the schema {schema:?} has version {version}, and this program knows up to {VERSION}"
    );
    Error::new(ErrorKind::Foreign, message)
        .remedy("upgrade this program; nothing in the database was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted_whatever_they_hold() {
        assert_eq!(quoted("we\"ird"), "\"we\"\"ird\"");
        assert_eq!(literal("o'clock"), "'o''clock'");
        let whole = whole("o'\"clock");
        assert!(whole.contains("CREATE SCHEMA \"o'\"\"clock\";"));
        assert!(!whole.contains("{schema}") && !whole.contains("{channel}"));
    }

    /// P10: a database of another encoding than UTF-8 takes ASCII alone.
    #[test]
    fn the_sql_is_plain_ascii() {
        for (number, line) in whole("tenure").lines().enumerate() {
            assert!(line.is_ascii(), "line {} of the schema: {line}", number + 1);
        }
        for text in [include_str!("sql/beat.sql"), include_str!("sql/owners.sql"), &rights("s")] {
            assert!(text.is_ascii());
        }
    }

    #[test]
    fn migrations_follow_one_another_up_to_our_version() {
        let versions: Vec<_> = MIGRATIONS.iter().map(|step| step.to).collect();
        assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());
    }
}
