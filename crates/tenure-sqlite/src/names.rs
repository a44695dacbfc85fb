//! Names in the file: their rows, and where the names of a namespace stand.

use std::collections::BTreeSet;

use rusqlite::{Row, named_params, params};
use tenure_core::{Incarnation, MemberRef, Name, Nonce, Rev, Timestamp, Token, Value, WhichNames};
use tenure_rules::{NameRow, NamesRow};

use crate::error::{Fault, Outcome};
use crate::journal::number;
use crate::rows::{incarnation, member_ref, name};
use crate::txn::Txn;

impl Txn<'_> {
    /// Where the names of this namespace stand.
    pub(crate) fn names_at(&self) -> Outcome<NamesRow> {
        let found = self.one(include_str!("sql/names_at.sql"), params![self.ns], |row| {
            let rev = row.get(0)?;
            let era = row.get(1)?;
            let kept_from = row.get(2)?;
            Ok(NamesRow { rev: Rev::new(rev), era, kept_from: Rev::new(kept_from) })
        })?;
        Ok(found.unwrap_or_default())
    }

    pub(crate) fn write_names_at(&mut self, row: &NamesRow) -> Outcome<()> {
        let rev = number(row.rev.get());
        let kept_from = number(row.kept_from.get());
        let values = params![self.ns, rev, number(row.era), kept_from];
        self.run(include_str!("sql/names_at_put.sql"), values)?;
        self.run(include_str!("sql/bindings_count.sql"), params![1, 0])?;
        self.bound = true;
        self.highest = self.highest.max(row.rev.get());
        Ok(())
    }

    pub(crate) fn read_name(&self, name: &Name) -> Outcome<Option<NameRow>> {
        self.one(include_str!("sql/name_get.sql"), params![self.ns, name.as_str()], read)
    }

    pub(crate) fn read_names(&self, which: &WhichNames) -> Outcome<Vec<NameRow>> {
        match which {
            WhichNames::Named(names) => {
                let names: BTreeSet<&Name> = names.iter().collect();
                let found = names.into_iter().map(|name| self.read_name(name));
                found.filter_map(Result::transpose).collect()
            }
            WhichNames::Prefix(prefix) => self.beginning_with(prefix),
            WhichNames::OwnedBy(life) => {
                let life = params![self.ns, life.id.as_str(), life.incarnation.to_string()];
                self.all(include_str!("sql/name_owned.sql"), life, read)
            }
            WhichNames::Since(rev) => {
                let after = params![self.ns, number(rev.get())];
                self.all(include_str!("sql/name_since.sql"), after, read)
            }
        }
    }

    /// The index has the names in the order of their bytes: those that begin with a text
    /// follow each other, and the first that does not ends the search.
    fn beginning_with(&self, prefix: &str) -> Outcome<Vec<NameRow>> {
        let mut select = self.db.prepare_cached(include_str!("sql/name_from.sql"))?;
        let mut rows = select.query(params![self.ns, prefix])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let row = read(row)?;
            if !row.name.as_str().starts_with(prefix) {
                break;
            }
            found.push(row);
        }
        Ok(found)
    }

    pub(crate) fn some_after(&self, after: Option<&Name>, most: usize) -> Outcome<Vec<NameRow>> {
        let after = params![self.ns, after.map_or("", Name::as_str), most];
        self.all(include_str!("sql/name_after.sql"), after, read)
    }

    pub(crate) fn dropped_since(&self, rev: Rev) -> Outcome<Vec<Name>> {
        let after = params![self.ns, number(rev.get())];
        self.all(include_str!("sql/dropped_since.sql"), after, own_name)
    }

    pub(crate) fn some_of(&self, life: &MemberRef, most: usize) -> Outcome<Vec<Name>> {
        let life = params![self.ns, life.id.as_str(), life.incarnation.to_string(), most];
        self.all(include_str!("sql/name_of.sql"), life, own_name)
    }

    pub(crate) fn write_name(&mut self, row: &NameRow) -> Outcome<()> {
        let owner = row.owner.as_ref();
        self.run(
            include_str!("sql/name_put.sql"),
            named_params! {
                ":ns": self.ns,
                ":name": row.name.as_str(),
                ":token": number(row.token.get()),
                ":rev": number(row.rev.get()),
                ":id": owner.map(|owner| owner.id.as_str()),
                ":incarnation": owner.map(|owner| owner.incarnation.to_string()),
                ":writer": row.by.map(|by: Incarnation| by.to_string()),
                ":nonce": row.nonce.get().cast_signed(),
                ":endpoint": row.value.endpoint(),
                ":pairs": pairs_text(&row.value),
                ":data": row.value.data(),
                ":bound_at": number(row.bound_at.unix_millis()),
            },
        )?;
        Ok(())
    }
}

fn own_name(row: &Row<'_>) -> Outcome<Name> {
    name("tenure_names", &row.get::<_, String>("name")?)
}

/// A row of `tenure_names`.
fn read(row: &Row<'_>) -> Outcome<NameRow> {
    let writer: Option<String> = row.get("writer")?;
    let is_owned = row.get::<_, Option<String>>("incarnation")?.is_some();
    Ok(NameRow {
        name: own_name(row)?,
        token: Token::new(row.get("token")?),
        rev: Rev::new(row.get("rev")?),
        owner: is_owned.then(|| member_ref(row)).transpose()?,
        by: writer.map(|hex| incarnation(&hex)).transpose()?,
        nonce: Nonce::new(row.get::<_, i64>("nonce")?.cast_unsigned()),
        value: read_value(row)?,
        bound_at: Timestamp::from_unix_millis(row.get("bound_at")?),
    })
}

/// Neither keys nor texts are empty or hold control characters, so a line each is
/// unambiguous.
fn pairs_text(value: &Value) -> String {
    let pairs = value.index().iter();
    pairs.flat_map(|(key, text)| [key.as_str(), text]).collect::<Vec<_>>().join("\n")
}

fn read_value(row: &Row<'_>) -> Outcome<Value> {
    let damaged = |bad| Fault::Damaged(format!("with the value of a name: {bad}"));
    let pairs: String = row.get("pairs")?;
    let lines: Vec<&str> = pairs.split('\n').filter(|line| !line.is_empty()).collect();
    let pairs = lines.chunks(2).map(|pair| (pair[0], pair.get(1).copied().unwrap_or_default()));
    let mut value = Value::empty();
    if let Some(endpoint) = row.get::<_, Option<String>>("endpoint")? {
        value = value.with_endpoint(endpoint).map_err(damaged)?;
    }
    let value = value.with_index(pairs).map_err(damaged)?;
    value.with_data(row.get::<_, Vec<u8>>("data")?).map_err(damaged)
}
