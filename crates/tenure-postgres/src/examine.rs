//! What the server says of itself, for the doctor, and a new era by an operator's word.

use std::time::SystemTime;

use tenure_core::{Amended, Era, EraView, Examined, Finding, Namespace, Note, Raised, TermNumber};
use tenure_store::Result;
use tokio_postgres::types::{ToSql, Type};

use crate::error::Effect;
use crate::rows::{timestamp, unsigned};
use crate::schema::VERSION;
use crate::verbs::{Verbs, get, one};

/// Why notifications may fail to arrive.
const LATE: &str = "a connection pooler or a proxy between here and the store often drops them: \
                    connect directly; changes are still found, later";

impl Verbs<'_> {
    pub(crate) async fn examine(&self, ns: &Namespace) -> Result<Examined> {
        let asked = "asking for the era of term numbers";
        let row = one(self.link.ask(asked, Effect::None, &self.texts.numbers, &[]).await?)?;
        let count = |column| get::<i64>(&row, column).map(unsigned);
        let raised_at = get::<Option<SystemTime>>(&row, "raised_at")?;
        let why = get::<Option<String>>(&row, "raised_for")?.unwrap_or_default();
        let era = EraView {
            era: Era::new(unsigned(get::<i32>(&row, "era")?.into()), count("floor")?),
            raised: raised_at.map(|at| Raised { at: timestamp(at), why }),
            highest: TermNumber::new(count("highest")?),
            clock: count("clock")?,
        };
        let mut findings = vec![Finding::schema(VERSION.unsigned_abs().into())];
        findings.extend(self.void_names(ns).await?);
        Ok(Examined { era: Some(era), findings, late_because: Some(LATE) })
    }

    /// How many names of this namespace are owned by lives that are over, if this role may
    /// look into the tables. One that may only call the verbs is told nothing: to count for it
    /// would take a verb that reads every name with the rights of the owner.
    async fn void_names(&self, ns: &Namespace) -> Result<Option<Finding>> {
        let asked = "counting names whose owners do not live";
        let may = self.texts.of_operator(
            "SELECT has_table_privilege(format('%I.names', {channel}), 'SELECT') \
             AND has_table_privilege(format('%I.members', {channel}), 'SELECT') AS may",
        );
        let rows = self.link.ask(asked, Effect::None, &may, &[]).await?;
        if !get::<bool>(&one(rows)?, "may")? {
            return Ok(None);
        }
        let count = self.texts.of_operator(
            "SELECT count(*) AS owned, count(*) FILTER (WHERE m.id IS NULL) AS void \
             FROM {schema}.names n LEFT JOIN {schema}.members m ON m.ns = n.ns \
             AND m.id = n.owner AND m.life = n.life AND m.expires_at > clock_timestamp() \
             WHERE n.ns = $1 AND n.life IS NOT NULL",
        );
        let params = [(&ns.as_str() as _, Type::TEXT)];
        let row = one(self.link.ask(asked, Effect::None, &count, &params).await?)?;
        let counted = |column| get::<i64>(&row, column).map(unsigned);
        Ok(Some(Finding::void_names(counted("void")?, counted("owned")?)))
    }

    pub(crate) async fn restored(
        &self,
        by: &Note,
        wait: (&(dyn ToSql + Sync), Type),
    ) -> Result<Amended> {
        let by = by.as_str();
        let params = [(&by as _, Type::TEXT), wait];
        let text = "SELECT era_before, era_after FROM {schema}.restored($1, $2)";
        let text = self.texts.of_operator(text);
        let row = one(self.link.ask("raising the era", Effect::Writes, &text, &params).await?)?;
        let era = |column| get::<i32>(&row, column).map(|era| unsigned(era.into()));
        Ok(Amended::Restored { before: era("era_before")?, after: era("era_after")? })
    }

    pub(crate) async fn queue_usage(&self) -> Result<f64> {
        let asked = "asking for the queue of notifications";
        let rows = self.link.ask(asked, Effect::None, &self.texts.queue_usage, &[]).await?;
        get(&one(rows)?, "queue_usage")
    }
}
