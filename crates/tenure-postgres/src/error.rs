//! What the server or the driver said, in the store's terms.

use tenure_store::{Error, ErrorKind};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Whether the request that failed would have changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: it only looked.
    None,
    /// It would have written.
    Writes,
}

/// An error of a request that was on its way to the server.
pub(crate) fn of_request(
    doing: &str,
    effect: Effect,
    error: tokio_postgres::Error,
) -> (Error, Fate) {
    let Some(db) = error.as_db_error() else {
        let said =
            Error::new(ErrorKind::Unreachable, format!("the connection broke while {doing}"))
                .caused_by(Plain(describe(&error)))
                .remedy("it is made again at the next request");
        return (maybe(said, effect), Fate::Broken);
    };
    let (kind, remedy) = judge(db);
    let text = format!("{} ({})", db.message(), db.code().code());
    let said = Error::new(kind, format!("PostgreSQL refused {doing}")).remedy(remedy);
    let said = match is_full(db) {
        true => said.caused_by(QueueFull(text)),
        false => said.caused_by(Plain(text)),
    };
    // A statement that failed was rolled back. One whose session was ended may
    // have been committed before the word of it got through.
    let ended = is_fatal(db);
    let said = if ended { maybe(said, effect) } else { said };
    (said, if ended || leave(db) { Fate::Broken } else { Fate::Usable })
}

/// Whether the commit failed because the server's queue of notifications is full; nothing was
/// applied then. When the same request is repeated, it looks at the queue first and sends no
/// notification (P3).
pub(crate) fn is_queue_full(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<NoRoom>())
}

fn is_full(db: &DbError) -> bool {
    *db.code() == SqlState::PROGRAM_LIMIT_EXCEEDED && db.message().contains("NOTIFY")
}

/// An error of making a connection: nothing can have been applied.
pub(crate) fn of_connect(doing: &str, error: &tokio_postgres::Error) -> Error {
    let text = describe(error);
    let (kind, remedy) = match error.as_db_error() {
        Some(db) => judge(db),
        None if text.contains("does not allow writes") => {
            (ErrorKind::Unwritable, "none of the hosts is a primary; is a failover under way?")
        }
        None if text.contains("password missing") => (
            ErrorKind::Denied,
            "the server asks for a password: give it in PGPASSWORD, or in a line of ~/.pgpass",
        ),
        None if text.contains("channel binding") => (
            ErrorKind::Denied,
            "channel binding needs a password by SCRAM over TLS, and a certificate signed with RSA \
             or ECDSA: without them, leave channel_binding=require out",
        ),
        None => (
            ErrorKind::Unreachable,
            "check that the server runs, and the hosts, the port and sslmode in the URL",
        ),
    };
    Error::new(kind, format!("{doing} failed")).caused_by(Plain(text)).remedy(remedy)
}

/// No answer in the time allowed.
pub(crate) fn timed_out(doing: &str, effect: Effect, limit: std::time::Duration) -> Error {
    let said = Error::new(
        ErrorKind::Timeout,
        format!("PostgreSQL did not answer within {limit:?} while {doing}"),
    );
    maybe(said.remedy("the connection is given up and made again"), effect)
}

/// The server answered, and warned: its wait for a standby was cancelled. What
/// was written may be on this server alone, and a failover would forget it.
pub(crate) fn warned(doing: &str) -> Error {
    let text = format!("PostgreSQL warned while {doing}, so that no standby may have it");
    Error::new(ErrorKind::Busy, text).maybe_applied().remedy(
        "the request is repeated; the server's log has the warning. Do not cancel sessions that \
         wait for synchronous replication: bring a standby up, or change synchronous_standby_names",
    )
}

/// What the server sent is not what its functions promise.
pub(crate) fn damaged(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Foreign, format!("the database answered with {what}"))
        .remedy("check that Tenure's tables and functions were not changed by hand")
}

/// What is to become of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Usable,
    Broken,
}

fn maybe(error: Error, effect: Effect) -> Error {
    match effect {
        Effect::None => error,
        Effect::Writes => error.maybe_applied(),
    }
}

fn is_fatal(db: &DbError) -> bool {
    matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// Errors after which another host, or a fresh session, may do better.
fn leave(db: &DbError) -> bool {
    let code = db.code();
    *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::INVALID_SQL_STATEMENT_NAME
        || *code == SqlState::FEATURE_NOT_SUPPORTED
        || *code == SqlState::DUPLICATE_PSTATEMENT
        // What this role may do was asked when the session was made.
        || *code == SqlState::INSUFFICIENT_PRIVILEGE
        || code.code().starts_with("08")
}

fn judge(db: &DbError) -> (ErrorKind, &'static str) {
    let code = db.code();
    match code.code() {
        "25006" => (
            ErrorKind::Unwritable,
            "the server is read-only or a standby; another host is tried, or name the primary",
        ),
        "53100" => (ErrorKind::Unwritable, "the server's disk is full: make room on it"),
        "53300" => (
            ErrorKind::Unreachable,
            "all connection slots are taken; the attempt is repeated. Raise max_connections, or \
             keep some free with reserved_connections",
        ),
        "57P01" | "57P02" | "57P03" | "57P04" => {
            (ErrorKind::Unreachable, "the server is starting, stopping or ended our session")
        }
        "57014" => (ErrorKind::Timeout, "the server's statement_timeout cut it off"),
        "55P03" if db.where_().is_some_and(|text| text.contains("relation \"")) => (
            ErrorKind::Busy,
            "another transaction has changed or locked the row: look in pg_stat_activity for one \
             that is idle in transaction",
        ),
        "55P03" => (
            ErrorKind::Busy,
            "another transaction is changing the namespace: look in pg_stat_activity for one that \
             is idle in transaction",
        ),
        "40001" | "40P01" => (ErrorKind::Busy, "it lost against another and can be repeated"),
        "28P01" | "28000" => (
            ErrorKind::Denied,
            "check user, password and pg_hba.conf; the attempt is repeated, in case they change",
        ),
        "42501" => (
            ErrorKind::Denied,
            "let the owner of the schema run: SELECT tenure.grant_to('this_role')",
        ),
        "3D000" => (ErrorKind::Denied, "create the database, or name another in the URL"),
        "3F000" | "42883" | "42P01" | "42703" => (
            ErrorKind::Foreign,
            "Tenure's schema is missing or not complete: run the program once with a role that \
             may create it, or apply the text of `tenure schema postgres`",
        ),
        "22003" | "22008" | "22023" | "22001" | "22021" | "22P05" | "23502" | "23514" => {
            (ErrorKind::Invalid, "correct the request")
        }
        "54000" if is_full(db) => (
            ErrorKind::Busy,
            "the server's queue of notifications is full, and nothing was applied: look in \
             pg_stat_activity for a session that listens and is idle in transaction",
        ),
        text if text.starts_with("08") => (ErrorKind::Unreachable, "the request is repeated"),
        text if text.starts_with("53") => (ErrorKind::Busy, "the server is short of resources"),
        _ => (ErrorKind::Internal, "the server's log says more"),
    }
}

/// The error and what it came from; never the URL, which may hold a password.
fn describe(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

/// What the server says of a commit that could not notify.
#[derive(Debug)]
struct QueueFull(String);

impl std::fmt::Display for QueueFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QueueFull {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&NoRoom)
    }
}

/// By which such an error is known again: the text of a cause is part of the error's own,
/// and what is behind it is all that is kept.
#[derive(Debug)]
struct NoRoom;

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no room for notifications")
    }
}

impl std::error::Error for NoRoom {}

#[derive(Debug)]
struct Plain(String);

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Plain {}
