//! The verbs, as statements.

use crate::link::Prepared;

/// The statements' texts, with the schema's name put in.
#[derive(Debug)]
pub(crate) struct Texts {
    schema: String,
    pub(crate) join: String,
    pub(crate) heartbeat: String,
    /// The heartbeat as a bare statement, for those who may write the table.
    pub(crate) beat: String,
    /// The same by a function that does nothing else, for all others.
    pub(crate) call_beat: String,
    pub(crate) leave: String,
    pub(crate) claims: Prepared,
    pub(crate) release: Prepared,
    pub(crate) purge: String,
    pub(crate) read: Prepared,
    pub(crate) look: Prepared,
    pub(crate) journal: Prepared,
    pub(crate) positions: String,
    pub(crate) notify: String,
    pub(crate) queue_usage: String,
    pub(crate) numbers: String,
    pub(crate) bind: Prepared,
    pub(crate) names: Prepared,
    pub(crate) tell_names: String,
}

impl Texts {
    pub(crate) fn new(schema: &str) -> Self {
        let put = |text: &str| crate::schema::put(text, schema);
        let prepared = |text: &str| Prepared { call: put(text), owner: None };
        let or_as_owner = |call, owner| Prepared { call: put(call), owner: Some(put(owner)) };
        let release = |name: &str, wait: &str| {
            format!(
                "SELECT {{schema}}.{name}($1, $2, $3, $4, $5, $6, $7, $8, $9, {wait}, $11, $12, \
                 $13)"
            )
        };
        Self {
            schema: schema.to_owned(),
            join: put("SELECT outcome, attention, seq, taken_by::text, left_us FROM \
                       {schema}.join($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"),
            heartbeat: put("SELECT outcome, attention, holds, seq, terms::text, handle FROM \
                            {schema}.heartbeat($1, $2, $3, $4, $5, $6, $7)"),
            beat: put(include_str!("sql/beat.sql")),
            call_beat: put("SELECT WHERE {schema}._beat($1, $2, $3, $4)"),
            leave: put("SELECT {schema}.leave($1, $2, $3, $4)"),
            claims: prepared(
                "SELECT outcome, numbers, elected, fenced, views::text[] FROM \
                           {schema}.claims($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            ),
            // A session of the owner's waits for locks as long as it is set to.
            release: or_as_owner(&release("release", "$10"), &release("_release", "0")),
            purge: put("SELECT elections, members, names, drops, journal, upto, more FROM \
                 {schema}.purge($1, $2, $3, $4, $5, $6, $7)"),
            read: prepared("SELECT {schema}.read($1, $2, $3, $4, $5, $6, $7, $8, $9)::text"),
            look: or_as_owner("SELECT * FROM {schema}.look($1, $2, $3, $4)", "{look}"),
            journal: prepared("SELECT {schema}.journal($1, $2, $3)::text"),
            positions: put("SELECT ns, seq, quiet, rev FROM {schema}.positions($1)"),
            queue_usage: put("SELECT {schema}.queue_usage()"),
            numbers: put(
                "SELECT era, floor, raised_at, raised_for, highest, clock FROM {schema}.numbers()",
            ),
            bind: prepared(
                "SELECT op, outcome, token, rev, owner, life::text, endpoint, idx::text, data, \
                 left_us, bound_ms, newest, told FROM {schema}.bind($1, $2, $3, $4, $5, $6, $7, \
                 $8, $9::text[]::jsonb[], $10, $11, $12, $13, $14, $15, $16, $17, $18, true)",
            ),
            names: prepared(
                "SELECT kind, name, token, rev, owner, life::text, endpoint, idx::text, data, \
                 left_us, bound_ms, whole FROM {schema}.names($1, $2, $3, $4, $5, $6, $7)",
            ),
            tell_names: put("SELECT {schema}.tell_names($1)"),
            notify: put("SELECT pg_notify({channel}, $1)"),
        }
    }

    /// A verb of an operator's. These are rare: each is written where it is sent.
    pub(crate) fn of_operator(&self, text: &str) -> String {
        crate::schema::put(text, &self.schema)
    }
}
