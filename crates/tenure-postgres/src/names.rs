//! Names: binding and reading them, and telling those who listen.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    Bind, BindAnswer, BindOp, Binding, Bindings, MemberRef, Name, NamesView, Namespace, Nonce, Rev,
    TermNumber, Timestamp, To, Token, Value, What, WhichNames,
};
use tenure_store::Result;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Effect, damaged};
use crate::rows::{self, Life, micros, parse, signed, span, unsigned};
use crate::store::Inner;
use crate::verbs::{Verbs, get, one};

/// How long after a change that was not told those who listen are told of it: the database
/// tells of a namespace's names this often at most.
const TELL_AFTER: Duration = Duration::from_millis(20);

/// The namespaces of which a task is going to tell.
#[derive(Debug, Default)]
pub(crate) struct Untold(Mutex<HashSet<Namespace>>);

impl Untold {
    fn set(&self) -> std::sync::MutexGuard<'_, HashSet<Namespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is asked of each name, as the function takes it.
#[derive(Default)]
struct Columns<'a> {
    names: Vec<&'a str>,
    nonces: Vec<i64>,
    whats: Vec<&'static str>,
    endpoints: Vec<Option<&'a str>>,
    indexes: Vec<Option<String>>,
    datas: Vec<Option<&'a [u8]>>,
    tokens: Vec<Option<i64>>,
    expects: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    fn of(ops: &'a [BindOp]) -> Self {
        let mut columns = Self::default();
        for op in ops {
            let (what, token, expect, value) = match &op.what {
                What::Take { to: To::Life, value } => ("take", None, None, Some(value)),
                What::Take { to: To::Unowned, value } => ("post", None, None, Some(value)),
                What::Change { of, token, expect, value } => {
                    let what = if *of == To::Life { "change" } else { "repost" };
                    (what, Some(*token), *expect, Some(value))
                }
                What::Drop { token } => ("drop", Some(*token), None, None),
            };
            columns.names.push(op.name.as_str());
            columns.nonces.push(nonce(op.nonce));
            columns.whats.push(what);
            columns.tokens.push(token.map(|token| signed(token.get())));
            columns.expects.push(expect.map(|rev| signed(rev.get())));
            columns.endpoints.push(value.and_then(Value::endpoint));
            columns.indexes.push(value.and_then(index));
            columns.datas.push(value.map(Value::data).filter(|data| !data.is_empty()));
        }
        columns
    }
}

/// A column, if there is anything in it: none costs the database less than many that are
/// empty.
fn some<T>(column: &[Option<T>]) -> Option<&[Option<T>]> {
    column.iter().any(Option::is_some).then_some(column)
}

/// A nonce may be any number: that of a caller that is no member is drawn at random.
fn nonce(nonce: Nonce) -> i64 {
    nonce.get().cast_signed()
}

fn index(value: &Value) -> Option<String> {
    let pairs: BTreeMap<_, _> = value.index().iter().cloned().collect();
    (!pairs.is_empty()).then(|| serde_json::json!(pairs).to_string())
}

impl Verbs<'_> {
    /// With whether those who listen were told.
    pub(crate) async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<(Bindings, bool)> {
        let columns = Columns::of(&bind.ops);
        let id = bind.member.as_ref().map(|member| member.id.as_str());
        let life = bind.member.as_ref().map(|member| Life(member.incarnation));
        let election = bind.fence.as_ref().map(|term| term.election.as_str());
        let number = bind.fence.as_ref().map(|term| signed(term.number.get()));
        let rows = self
            .link
            .ask_prepared(
                "binding names",
                Effect::Writes,
                &self.texts.bind,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&id, Type::TEXT),
                    (&life, Type::UUID),
                    (&micros(bind.ttl), Type::INT8),
                    (&columns.names, Type::TEXT_ARRAY),
                    (&columns.nonces, Type::INT8_ARRAY),
                    (&columns.whats, Type::TEXT_ARRAY),
                    (&some(&columns.endpoints), Type::TEXT_ARRAY),
                    (&some(&columns.indexes), Type::TEXT_ARRAY),
                    (&some(&columns.datas), Type::BYTEA_ARRAY),
                    (&some(&columns.tokens), Type::INT8_ARRAY),
                    (&some(&columns.expects), Type::INT8_ARRAY),
                    (&election, Type::TEXT),
                    (&number, Type::INT8),
                    (&self.lock_wait, Type::INT4),
                    (&signed(bind.seen.place.get()), Type::INT8),
                    (&signed(bind.known.get()), Type::INT8),
                    (&signed(bind.seen.number.get()), Type::INT8),
                ],
            )
            .await?;
        let told = rows.first().map_or(Ok(true), |row| get(row, "told"))?;
        Ok((bindings(bind, &rows)?, told))
    }

    pub(crate) async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        let mut named = Vec::new();
        let mut prefix = "";
        let mut owner = None;
        let mut since = 0;
        let which = match which {
            WhichNames::Named(names) => {
                named = names.iter().map(|name| name.as_str()).collect();
                "named"
            }
            WhichNames::Prefix(text) => {
                prefix = text;
                "prefix"
            }
            WhichNames::OwnedBy(member) => {
                owner = Some(member);
                "owned"
            }
            WhichNames::Since(rev) => {
                since = signed(rev.get());
                "since"
            }
        };
        let rows = self
            .link
            .ask_prepared(
                "reading names",
                Effect::None,
                &self.texts.names,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&which, Type::TEXT),
                    (&named, Type::TEXT_ARRAY),
                    (&prefix, Type::TEXT),
                    (&owner.map(|member| member.id.as_str()), Type::TEXT),
                    (&owner.map(|member| Life(member.incarnation)), Type::UUID),
                    (&since, Type::INT8),
                ],
            )
            .await?;
        view(&rows)
    }

    async fn tell_names(&self, ns: &Namespace) -> Result<()> {
        let ns = ns.as_str();
        let params = [(&ns as _, Type::TEXT)];
        let asked = self.link.ask("telling", Effect::None, &self.texts.tell_names, &params);
        one(asked.await?).map(drop)
    }
}

impl Inner {
    /// Tells those who listen of a change of names that came too soon after another to be
    /// told. If this process dies first they find out when they look.
    pub(crate) fn tell_later(self: &Arc<Self>, ns: &Namespace) {
        if !self.untold.set().insert(ns.clone()) {
            return;
        }
        let inner = Arc::downgrade(self);
        let ns = ns.clone();
        tokio::spawn(async move {
            tokio::time::sleep(TELL_AFTER).await;
            let Some(inner) = inner.upgrade() else { return };
            // Taken out first: what is changed while this is under way is told by another.
            inner.untold.set().remove(&ns);
            if let Err(error) = inner.verbs(&inner.requests).tell_names(&ns).await {
                tracing::debug!(%error, %ns, "a change of names was not told");
            }
        });
    }
}

fn bindings(bind: &Bind, rows: &[Row]) -> Result<Bindings> {
    if let Some(row) = rows.first().filter(|row| row.try_get("op").is_ok_and(|op: i32| op == 0)) {
        return match get::<&str>(row, "outcome")? {
            "ended" => Ok(Bindings::Ended { superseded: false }),
            "superseded" => Ok(Bindings::Ended { superseded: true }),
            "fenced" => {
                let newest = TermNumber::new(unsigned(get(row, "newest")?));
                Ok(Bindings::Fenced { newest })
            }
            "made" => made(bind, row),
            other => Err(damaged(format_args!("{other:?} to a change of names"))),
        };
    }
    if rows.len() != bind.ops.len() {
        let rows = rows.len();
        let ops = bind.ops.len();
        return Err(damaged(format_args!("{rows} answers for {ops} changes of names")));
    }
    let answers = bind.ops.iter().zip(rows).map(|(op, row)| answer(op, row));
    Ok(Bindings::Answered(answers.collect::<Result<_>>()?))
}

/// All of these names were taken anew, one after the other.
fn made(bind: &Bind, row: &Row) -> Result<Bindings> {
    let owner = owner(row)?;
    let after: i64 = get(row, "rev")?;
    let remaining = span(get(row, "left_us")?);
    let bound_at = Timestamp::from_unix_millis(unsigned(get(row, "bound_ms")?));
    let bound = |(op, rev): (&BindOp, u64)| {
        let value = written(op).cloned().unwrap_or_default();
        let name = op.name.clone();
        let token = Token::new(rev);
        let rev = Rev::new(rev);
        let owner = owner.clone();
        BindAnswer::Bound(Binding { name, token, rev, owner, value, remaining, bound_at })
    };
    let answers = bind.ops.iter().zip(unsigned(after) + 1..).map(bound);
    Ok(Bindings::Answered(answers.collect()))
}

fn answer(op: &BindOp, row: &Row) -> Result<BindAnswer> {
    let found = match get::<Option<i64>>(row, "token")? {
        Some(_) => Some(binding(op.name.clone(), written(op), owner(row)?, row)?),
        None => None,
    };
    match (get::<&str>(row, "outcome")?, found) {
        ("bound", Some(binding)) => Ok(BindAnswer::Bound(binding)),
        ("taken", Some(binding)) => Ok(BindAnswer::Taken(binding)),
        ("gone", found) => Ok(BindAnswer::Gone(found)),
        ("busy", _) => Ok(BindAnswer::Busy(op.name.clone())),
        (other, _) => Err(damaged(format_args!("{other:?} to a change of a name"))),
    }
}

fn written(op: &BindOp) -> Option<&Value> {
    match &op.what {
        What::Take { value, .. } | What::Change { value, .. } => Some(value),
        What::Drop { .. } => None,
    }
}

/// A binding. A value that the row leaves out is what was written just now.
fn binding(
    name: Name,
    written: Option<&Value>,
    owner: Option<MemberRef>,
    row: &Row,
) -> Result<Binding> {
    let value = match (get::<Option<&[u8]>>(row, "data")?, written) {
        (Some(data), _) => value(get(row, "endpoint")?, get(row, "idx")?, data)?,
        (None, Some(written)) => written.clone(),
        (None, None) => return Err(damaged("a name without its value")),
    };
    let at = unsigned(get(row, "bound_ms")?);
    Ok(Binding {
        name,
        token: Token::new(unsigned(get(row, "token")?)),
        rev: Rev::new(unsigned(get(row, "rev")?)),
        owner,
        value,
        remaining: span(get(row, "left_us")?),
        bound_at: Timestamp::from_unix_millis(at),
    })
}

fn owner(row: &Row) -> Result<Option<MemberRef>> {
    Owners::default().of(row)
}

/// Reads owners, of whom the last one most likely comes again.
#[derive(Default)]
struct Owners(Option<(String, MemberRef)>);

impl Owners {
    fn of(&mut self, row: &Row) -> Result<Option<MemberRef>> {
        let id = get::<Option<&str>>(row, "owner")?;
        let life = get::<Option<&str>>(row, "life")?;
        let Some((id, life)) = id.zip(life) else { return Ok(None) };
        if let Some((of, member)) = &self.0
            && of == life
            && member.id.as_str() == id
        {
            return Ok(Some(member.clone()));
        }
        let member = rows::member(id, life)?;
        self.0 = Some((life.to_owned(), member.clone()));
        Ok(Some(member))
    }
}

/// What is published with a name, out of the columns that have it.
pub(crate) fn value(endpoint: Option<&str>, idx: Option<&str>, data: &[u8]) -> Result<Value> {
    // Most have none.
    let idx = idx.filter(|idx| *idx != "{}");
    let pairs: BTreeMap<String, String> = idx.map(parse).transpose()?.unwrap_or_default();
    let value = Value::empty().with_data(data).and_then(|value| value.with_index(pairs));
    let value = value.and_then(|value| match endpoint {
        Some(endpoint) => value.with_endpoint(endpoint),
        None => Ok(value),
    });
    value.map_err(|bad| damaged(format_args!("a value that cannot be: {bad}")))
}

fn view(rows: &[Row]) -> Result<NamesView> {
    let mut view = NamesView::default();
    let mut owners = Owners::default();
    for row in rows {
        let name = || rows::name(get(row, "name")?);
        match get::<&str>(row, "kind")? {
            "at" => {
                view.rev = Rev::new(unsigned(get(row, "rev")?));
                view.whole = get(row, "whole")?;
            }
            "bound" => view.bindings.push(binding(name()?, None, owners.of(row)?, row)?),
            "gone" => view.gone.push(name()?),
            "owner" => {
                let owner = owner(row)?.ok_or_else(|| damaged("an owner without an id"))?;
                view.owners.push((owner, span(get(row, "left_us")?)));
            }
            other => return Err(damaged(format_args!("{other:?} among names"))),
        }
    }
    view.gone.sort();
    view.owners.sort();
    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_are_errors_that_say_so() {
        let said = |idx| value(None, Some(idx), b"").err().map(|error| error.to_string());
        for odd in ["[]", "{\"k\":1}", "{\"\":\"v\"}", "{\"k\":\"\"}", "{"] {
            assert!(said(odd).is_some_and(|s| s.contains("the database answered")), "{odd}");
        }
        assert!(value(Some(""), None, b"").is_err());
        let good = value(Some("a:1"), Some("{\"z\":\"1\",\"a\":\"2\"}"), b"\0").unwrap();
        assert_eq!(good.index()[0], ("a".into(), "2".into()));
        assert_eq!(value(good.endpoint(), index(&good).as_deref(), good.data()).unwrap(), good);
    }

    /// Q3: two nonces that were drawn at random are two, whatever their size.
    #[test]
    fn large_nonces_stay_apart() {
        assert_ne!(nonce(Nonce::new(u64::MAX)), nonce(Nonce::new(u64::MAX - 1)));
        assert_eq!(nonce(Nonce::new(7)), 7);
    }
}
