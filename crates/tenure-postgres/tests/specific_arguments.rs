//! The SQL functions, called with any argument that a driver can send.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;

use common::sound::unsound;
use common::{Place, admin};
use tenure_core::{Namespace, Query, WhichNames};
use tenure_store::Store;
use tenure_testkit::Dice;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

/// What a call may be refused with, as `docs/sql.md` has it.
const REFUSALS: [&str; 10] = [
    "TN001", // the term is over
    "TN002", // the term is another store's
    "22003", // a number out of range
    "22008", // an instant beyond the calendar
    "22023", // an argument that can never be right
    "2201W", // a negative limit
    "23502", // NULL where there must be a value
    "55P03", // a lock was not to be had in the millisecond that was asked for
    "23514", // a profile that cannot be
    "42704", // grant_to: there is no such role
];

/// What each verb that gives rows may answer.
const OUTCOMES: [(&str, &[&str]); 8] = [
    ("bind", &["bound", "taken", "gone", "busy", "ended", "superseded", "fenced"]),
    ("join", &["in", "taken"]),
    ("heartbeat", &["alive", "ended", "superseded"]),
    ("claim", &["won", "held", "fenced", "ended", "superseded"]),
    ("ask_step_down", &["done", "unchanged", "vacant", "superseded", "no such candidate"]),
    ("pause", &["done", "unchanged"]),
    ("resume", &["done", "unchanged"]),
    ("evict", &["done", "unchanged", "no such member"]),
];

const SPANS: [Option<&str>; 4] = [Some("30 s"), Some("-1 s"), Some("1000000 years"), None];
const TEXTS: [&str; 18] = [
    "",
    " ",
    " x",
    "x\u{a0}",
    "a\nb",
    "a\tb",
    "\u{1}",
    "\u{7f}",
    "x\u{85}",
    "'; DROP SCHEMA tenure; --",
    "\"",
    "\\",
    "{a,NULL}",
    "NULL",
    "%s$1",
    "選挙",
    "\u{feff}\u{202e}",
    "😀",
];

const INDEXES: [&str; 5] = ["{}", "{}", "{}", "{\"k\": \"v\"}", "{\"k\": 1}"];

const NUMBERS: [i64; 12] = [
    0,
    -1,
    1,
    65_535,
    65_536,
    1 << 31,
    -(1 << 31),
    1 << 53,
    i64::MAX,
    i64::MIN,
    86_400_000_000,
    9_223_372_036_854_775,
];

/// Chance, and who calls: a member goes on under the same life for a while.
struct Caller {
    dice: Dice,
    who: usize,
    round: usize,
    /// How many texts were a megabyte long.
    long: usize,
    known: Vec<i64>,
}

impl Caller {
    fn below(&mut self, most: usize) -> usize {
        self.dice.below(most)
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        self.dice.one_of(all)
    }

    fn odd(&mut self) -> bool {
        self.below(14) == 0
    }

    fn text(&mut self, name: &str) -> Option<String> {
        if name != "p_indexes" && self.odd() {
            return match self.below(40) {
                0..5 => None,
                5..10 => Some("x".repeat(201)),
                10 => {
                    self.long += 1;
                    Some("ü".repeat(1 << 19))
                }
                _ => Some(self.one_of(&TEXTS).to_owned()),
            };
        }
        let usual: &[&str] = match name {
            "p_ns" => &["default", "default", "other"],
            "p_which" => &["all", "named", "held", "nothing", "prefix", "owned", "since"],
            "p_indexes" => &INDEXES,
            "p_whats" => &["take", "take", "post", "change", "repost", "drop"],
            "p_names" | "p_elections" | "p_election" => &["e1", "e2", "e3", "a/b"],
            "p_causes" => &["resigned", "stepped down", "abandoned", "left", "expired"],
            "p_endpoints" => &["h:1", "h:2"],
            "p_role" => &["no_such_role"],
            // The preferred candidate, and whatever term there is.
            "p_to" | "p_successors" if self.below(3) > 0 => return None,
            "p_member" => return Some(format!("m{}", self.who)),
            _ => &["m1", "m2", "m3"],
        };
        Some(self.one_of(usual).to_owned())
    }

    fn number(&mut self, name: &str) -> Option<i64> {
        if ["p_seen", "p_known", "p_told"].contains(&name) && self.round < 25 {
            return Some(0);
        }
        if self.odd() {
            let any = self.one_of(&NUMBERS);
            return (self.below(5) > 0).then_some(any);
        }
        if name == "p_number" && self.below(2) == 0 {
            return None;
        }
        if name.starts_with("p_number") && !self.known.is_empty() && self.below(2) == 0 {
            return Some(self.one_of(&self.known.clone()));
        }
        Some(match name {
            "p_ttl_us" => 60_000_000,
            "p_wait_ms" | "p_grace_us" | "p_successor_us" => self.one_of(&[0, 1_000_000]),
            "p_priorities" => self.one_of(&[0, 100, 100, 7]),
            "p_limit" | "p_history" => 500,
            "p_nonces" => i64::try_from(self.round * 9 + self.below(9)).unwrap(),
            _ => i64::try_from(self.below(6)).unwrap(),
        })
    }

    /// How many things; mostly as many as everywhere in the call.
    fn length(&mut self, usual: usize) -> Option<usize> {
        if !self.odd() {
            return Some(usual);
        }
        self.one_of(&[None, Some(0), Some(1), Some(17), Some(600)])
    }

    fn argument(&mut self, name: &str, kind: &str, usual: usize) -> Box<dyn ToSql + Sync> {
        let int = |n: i64| i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX });
        match kind {
            "text" | "name" => Box::new(self.text(name)),
            "uuid" => {
                let old = usize::from(self.odd());
                let life = (self.round / 3).saturating_sub(old) * 10 + self.who;
                Box::new((!self.odd()).then(|| format!("00000000-0000-0000-0000-{life:012}")))
            }
            "bigint" => Box::new(self.number(name)),
            "integer" => Box::new(self.number(name).map(int)),
            "boolean" => Box::new(self.one_of(&[Some(true), Some(false), Some(false), None])),
            "interval" => Box::new(self.one_of(&SPANS)),
            "bytea" => {
                let long = if self.odd() { 1 << 20 } else { self.below(9) };
                Box::new((!self.odd()).then(|| vec![0xff_u8; long]))
            }
            "bytea[]" => Box::new(
                self.length(usual)
                    .map(|n| vec![vec![0_u8; self.one_of(&[0, 3, 3, 3, 3, 5_000])]; n]),
            ),
            "text[]" | "jsonb[]" => Box::new(
                self.length(usual).map(|n| (0..n).map(|_| self.text(name)).collect::<Vec<_>>()),
            ),
            "bigint[]" => Box::new(
                self.length(usual).map(|n| (0..n).map(|_| self.number(name)).collect::<Vec<_>>()),
            ),
            "integer[]" => {
                Box::new(self.length(usual).map(|n| {
                    (0..n).map(|_| self.number(name).map(int)).collect::<Vec<Option<i32>>>()
                }))
            }
            other => panic!("a parameter of a kind that this test does not know: {other}"),
        }
    }
}

/// A function that clients may call, with the names and kinds of its arguments.
struct Verb {
    name: String,
    arguments: Vec<(String, String)>,
}

/// All of them, from the server's own catalogue: none is forgotten here.
async fn verbs(client: &Client, schema: &str) -> Vec<Verb> {
    let asked = "SELECT p.proname::text, (p.proargnames)[1:p.pronargs]::text[], \
                 ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) \
                       WITH ORDINALITY AS u(t, ord) ORDER BY u.ord)::text[] \
                 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                 WHERE n.nspname = $1 AND left(p.proname, 1) <> '_' ORDER BY 1";
    let rows = client.query(asked, &[&schema]).await.unwrap();
    let verb = |row: &tokio_postgres::Row| {
        let names: Option<Vec<String>> = row.get(1);
        let kinds: Vec<String> = row.get(2);
        let arguments = names.unwrap_or_default().into_iter().zip(kinds).collect();
        Verb { name: row.get(0), arguments }
    };
    rows.iter().map(verb).collect()
}

/// Calls it, and says what came back: an outcome or a refusal.
async fn call(client: &Client, schema: &str, verb: &Verb, dice: &mut Caller) -> String {
    let usual = 1 + dice.below(3);
    dice.who = 1 + dice.below(3);
    let mut places = Vec::new();
    let mut values: Vec<Box<dyn ToSql + Sync>> = Vec::new();
    for (i, (name, kind)) in verb.arguments.iter().enumerate() {
        // The driver has no kind for these.
        let cast = match &**kind {
            "uuid" | "name" | "interval" => "text::",
            "jsonb[]" => "text[]::",
            _ => "",
        };
        places.push(format!("${}::{cast}{kind}", i + 1));
        // A store that is named here is another one, and most often so is a life.
        let fences = verb.name == "fence" && i >= 3 || verb.name == "bind" && i == 12;
        let left_out = fences && dice.below(8) > 0;
        values.push(if left_out {
            Box::new(None::<String>)
        } else {
            dice.argument(name, kind, usual)
        });
    }
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(AsRef::as_ref).collect();
    let sql = format!("SELECT * FROM {schema}.{}({})", verb.name, places.join(", "));
    match client.query(&sql, &values).await {
        Ok(rows) => {
            let known = OUTCOMES.iter().find(|(name, _)| *name == verb.name);
            let Some((_, outcomes)) = known else { return format!("{}: fine", verb.name) };
            for row in &rows {
                let outcome: String = row.get("outcome");
                assert!(outcomes.contains(&&*outcome), "{} answered {outcome:?}", verb.name);
            }
            let first = rows.first().map(|row| row.get::<_, String>("outcome"));
            format!("{}: {}", verb.name, first.unwrap_or_default())
        }
        Err(error) => {
            let db = error.as_db_error().unwrap_or_else(|| panic!("{}: {error}", verb.name));
            let code = db.code().code();
            let short: String = db.message().chars().take(200).collect();
            assert!(REFUSALS.contains(&code), "{} failed with {code}: {short}", verb.name);
            format!("{}: {code}", verb.name)
        }
    }
}

type Numbers = HashMap<(String, String), i64>;

async fn check(client: &Client, schema: &str, store: &impl Store, numbers: &mut Numbers) {
    let broken = unsound(client, schema).await;
    assert!(broken.is_empty(), "it no longer holds that {broken:?}");
    let sql = format!("SELECT ns, name, number FROM {schema}.elections");
    let rows = client.query(&sql, &[]).await.unwrap();
    let now: Numbers = rows.iter().map(|r| ((r.get(0), r.get(1)), r.get(2))).collect();
    for (election, before) in numbers.iter().filter(|(_, number)| **number > 0) {
        let after = now.get(election).copied();
        assert!(after >= Some(*before), "{election:?} went from {before} to {after:?}");
    }
    *numbers = now;
    // One odd row would keep all clients from reading all the others.
    let sql = format!("SELECT ns FROM {schema}.namespaces");
    for row in client.query(&sql, &[]).await.unwrap() {
        let ns = Namespace::new(row.get::<_, String>(0)).expect("a namespace that can be");
        let everything = Query { history: 100_000, ..Query::everything() };
        store.read(&ns, &everything).await.expect("whatever is stored can be read");
        let all = WhichNames::Prefix(String::new());
        store.names(&ns, &all).await.expect("whatever is stored can be read");
    }
}

/// H5 and more: whatever the functions are called with, they answer or refuse in
/// a documented way, and what is stored stays sound and readable.
#[tokio::test(flavor = "multi_thread")]
async fn any_argument_is_answered_or_refused_and_the_tables_stay_sound() {
    let client = admin().await;
    let mut seen = Numbers::new();
    let mut counts = HashMap::<String, usize>::new();
    let mut long = 0;
    for seed in 1..=3 {
        let place = Place::new();
        let store = place.open().await;
        place.sql("UPDATE {s}.settings SET journal_keep = 300").await;
        let verbs = verbs(&client, &place.schema).await;
        assert!(verbs.len() >= 15, "the verbs were found: {}", verbs.len());
        let mut dice =
            Caller { dice: Dice::new(seed), who: 1, round: 0, long: 0, known: Vec::new() };
        let mut numbers = Numbers::new();
        for round in 0..30 {
            dice.round = round;
            for _ in 0..45 {
                let mut verb = &verbs[dice.below(verbs.len())];
                let dull = "evict grant_to leave numbers pause positions queue_usage restored \
                    store_id tell_names version";
                if dull.split_whitespace().any(|name| name == verb.name) && dice.below(4) > 0 {
                    verb = &verbs[dice.below(verbs.len())];
                }
                if verb.name == "restored" && round < 25 {
                    continue;
                }
                let said = call(&client, &place.schema, verb, &mut dice).await;
                *counts.entry(said).or_default() += 1;
            }
            check(&client, &place.schema, &store, &mut numbers).await;
            dice.known = numbers.values().copied().filter(|number| *number > 0).collect();
            dice.known.sort_unstable();
        }
        seen.extend(numbers);
        long += dice.long;
    }
    assert!(long > 0, "no text of a megabyte was ever sent");
    // A test in which nothing is ever won or refused would show nothing.
    let reached = |what: &str| counts.get(what).copied().unwrap_or_default();
    let wanted = "join: in, join: 22023, heartbeat: alive, claim: won, claim: held, join: 23514, \
        claim: 22023, release: 22023, ask_step_down: done, pause: done, resume: done, evict: \
        done, release: fine, fence: fine, fence: TN001, fence: TN002, read: fine, journal: \
        2201W, bind: bound, bind: 22023, try_lead: fine, try_lead: 22023, step_down: fine";
    for what in wanted.split(", ") {
        assert!(reached(what) > 0, "{what} was never reached: {counts:?}");
    }
    assert!(seen.values().any(|number| *number > 1), "a term was won again");
}

/// What can never be right is refused where it would be stored, each in words
/// that say the rule, and leaves nothing behind.
#[tokio::test]
async fn what_can_never_be_right_is_refused_by_the_rule_it_breaks() {
    let place = Place::new();
    let client = admin().await;
    let store = place.open().await;
    let s = &place.schema;
    let life = "'00000000-0000-0000-0000-000000000001'";
    let call = async |sql: &str| client.batch_execute(&sql.replace("{s}", s)).await;
    call(&format!("SELECT {{s}}.join('default', 'm', {life}, 60000000)")).await.unwrap();
    let claim = |names: &str, priorities: &str, nonces: &str| {
        let arrays =
            format!("ARRAY[{names}], ARRAY[{priorities}]::int[], ARRAY[{nonces}]::bigint[]");
        format!("SELECT {{s}}.claim('default', 'm', {life}, 60000000, {arrays})")
    };
    let mut cases = vec![
        (claim("'e'", "-1", "1"), "a priority is 0 to 65535"),
        (claim("'e', 'f'", "1, 65536", "1, 1"), "a priority is 0 to 65535"),
        (claim("'e'", "1", "NULL"), "each bid has a nonce"),
        (claim("'e', 'f'", "1, 1", "1"), "each bid has a nonce"),
        (format!("SELECT {{s}}.heartbeat('default', 'm', {life}, 0)"), "the ttl is a positive"),
        (format!("SELECT {{s}}.join('default', 'n', {life}, -1)"), "the ttl is a positive"),
        (
            format!("SELECT {{s}}.release('default', 'm', {life}, '{{e}}', '{{1}}', '{{bored}}')"),
            "a cause is one of",
        ),
    ];
    let long = "x".repeat(201);
    // More than an index could hold, also compressed.
    let scattered = |n: u64| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let huge: String = (1..2_000).map(scattered).collect();
    for name in ["", " x", "x\u{a0}", "a\nb", "\u{7f}", "x\u{85}", &long, &huge] {
        let name = format!("'{name}'");
        cases.extend([
            (format!("SELECT {{s}}.join({name}, 'm', {life}, 1)"), "a namespace has"),
            (format!("SELECT {{s}}.pause({name}, 'e')"), "a namespace has"),
            (format!("SELECT {{s}}.join('default', {name}, {life}, 1)"), "a member's id has"),
            (format!("SELECT {{s}}.pause('default', {name})"), "an election's name has"),
            (claim(&name, "1", "1"), "an election's name has"),
            (claim(&name, "0", "1"), "an election's name has"),
            (claim(&format!("'e', {name}"), "1, 1", "1, 1"), "an election's name has"),
        ]);
    }
    for (sql, rule) in cases {
        let error = call(&sql).await.expect_err(&sql);
        let said = error.as_db_error().unwrap();
        assert_eq!(said.code().code(), "22023", "{sql}: {said}");
        assert!(said.message().starts_with(rule), "{sql}: {said}");
    }
    let everything = store.read(&Namespace::default(), &Query::everything()).await.unwrap();
    assert_eq!((everything.elections.len(), everything.members.len()), (0, 1), "{everything:?}");
    let namespaces = client.query(&format!("SELECT FROM {s}.namespaces"), &[]).await.unwrap();
    assert_eq!(namespaces.len(), 1);
}

/// H27, M2: a claim ends a dead holder, with whom an election is forgotten that
/// no other stood for and that the same claim bids for: both are won and told.
#[tokio::test]
async fn what_is_forgotten_during_a_claim_is_won_beside_the_rest() {
    let place = Place::new();
    let client = admin().await;
    let _store = place.open().await;
    let life = |n: u8| format!("'00000000-0000-0000-0000-00000000000{n}'");
    let claim = |who: &str, n: u8, ttl: u64, priorities: &str, nonces: &str| {
        let s = &place.schema;
        let life = life(n);
        format!(
            "SELECT count(*) FILTER (WHERE outcome = 'won') FROM {s}.claim('default', '{who}', \
             {life}, {ttl}, '{{a,b}}', '{{{priorities}}}', '{{{nonces}}}')"
        )
    };
    for (who, n) in [("dead", 1), ("heir", 2)] {
        let join =
            format!("SELECT {}.join('default', '{who}', {}, 60000000)", place.schema, life(n));
        client.batch_execute(&join).await.unwrap();
    }
    let won = async |sql: &str| client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(won(&claim("dead", 1, 60_000_000, "100,0", "1,1")).await, 1);
    place.sql("UPDATE {s}.members SET expires_at = now() - interval '1 s' WHERE id = 'dead'").await;
    assert_eq!(won(&claim("heir", 2, 60_000_000, "100,100", "1,1")).await, 2);
    let told = "SELECT count(*) FROM {s}.journal WHERE kind = 'elected' AND member = 'heir'";
    assert_eq!(won(&told.replace("{s}", &place.schema)).await, 2, "both are told");
    let holds = "SELECT holds::bigint FROM {s}.members WHERE id = 'heir'";
    assert_eq!(won(&holds.replace("{s}", &place.schema)).await, 2, "both are counted");
}
