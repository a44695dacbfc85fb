//! Forgetting what is no longer used, one bounded step at a time.

use tenure_core::{ElectionName, Namespace, Purge, Purged};
use tenure_store::Result;
use tokio_postgres::types::Type;

use crate::error::{Effect, damaged};
use crate::rows::{micros, unsigned};
use crate::verbs::{Verbs, get, one};

impl Verbs<'_> {
    pub(crate) async fn purge(&self, ns: &Namespace, purge: &Purge) -> Result<Purged> {
        let after = purge.after.as_ref().map(ElectionName::as_str);
        let most = i32::try_from(purge.most.max(1)).unwrap_or(i32::MAX);
        let effect = if purge.dry_run { Effect::None } else { Effect::Writes };
        let rows = self
            .link
            .ask(
                "purging",
                effect,
                &self.texts.purge,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&micros(purge.older_than), Type::INT8),
                    (&after, Type::TEXT),
                    (&most, Type::INT4),
                    (&purge.dry_run, Type::BOOL),
                    (&purge.by.as_str(), Type::TEXT),
                    (&self.lock_wait, Type::INT4),
                ],
            )
            .await?;
        let row = one(rows)?;
        let count = |column| get::<i64>(&row, column).map(unsigned);
        let upto = get::<Option<&str>>(&row, "upto")?.map(ElectionName::new).transpose();
        Ok(Purged {
            elections: count("elections")?,
            members: count("members")?,
            names: count("names")?,
            drops: count("drops")?,
            journal: get(&row, "journal")?,
            upto: upto.map_err(|bad| damaged(format_args!("an election's name: {bad}")))?,
            more: get(&row, "more")?,
        })
    }
}
