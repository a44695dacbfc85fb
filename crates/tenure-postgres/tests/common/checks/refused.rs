//! What can never be right is refused where names are bound and elections purged, by the
//! rule that it breaks; and what is just right is not.

use tokio_postgres::Client;

use super::Spot;

const LIFE: &str = "'00000000-0000-0000-0000-000000000001'";

/// A call that is taken back: the code and the message, if it is refused.
async fn call(client: &Client, schema: &str, text: &str) -> Option<(String, String)> {
    client.batch_execute("BEGIN").await.unwrap();
    let text = text.replace("{s}", schema).replace("{life}", LIFE);
    let called = client.batch_execute(&text).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    let error = called.err()?;
    let told = error.as_db_error().unwrap();
    Some((told.code().code().to_owned(), told.message().to_owned()))
}

async fn check(client: &Client, schema: &str, cases: &[(String, &str)]) {
    for (text, rule) in cases {
        let told = call(client, schema, text).await;
        let short: String = text.chars().take(300).collect();
        match told {
            None => assert!(rule.is_empty(), "not refused: {short}"),
            Some((code, message)) => {
                assert!(!rule.is_empty() && message.starts_with(rule), "{short}: {message}");
                assert_eq!(code, "22023", "{short}: {message}");
            }
        }
    }
}

async fn scene(at: &Spot) -> Client {
    let client = at.client().await;
    let join = format!("SELECT {}.join('default', 'm', {LIFE}, 60000000)", at.schema);
    client.batch_execute(&join).await.unwrap();
    client
}

/// A call of `bind` for the member, with other arguments than the usual ones.
fn bind(arguments: &str) -> String {
    bind_as("'default', 'm', {life}, 60000000", arguments)
}

fn bind_as(who: &str, arguments: &str) -> String {
    format!("SELECT {{s}}.bind({who}, {arguments})")
}

/// One name, and something done to it, with what goes with it.
fn one(what: &str, further: &str) -> String {
    bind(&format!("ARRAY['n'], ARRAY[1], ARRAY[{what}]{further}"))
}

const NAME: &str = "a name has 1 to 200 bytes";
const TOKEN: &str = "a change or a drop names the token";
const DATA: &str = "the data of a name";
const ENDPOINT: &str = "an endpoint has";
const INDEX: &str = "an index has";

pub async fn a_name_that_cannot_be_bound_is_refused_by_the_rule_it_breaks(at: Spot) {
    let client = scene(&at).await;
    let mut cases = Vec::new();
    let long = "x".repeat(201);
    let bytes = "\u{e9}".repeat(101);
    for bad in ["", " x", "x ", "x\u{a0}", "a\nb", "\u{7f}", "x\u{85}", &long, &bytes] {
        let bad = format!("'{bad}'");
        // Alone, and among others that are plain, or are not.
        for names in [bad.clone(), format!("'n', {bad}"), format!("{bad}, '\u{e9}'")] {
            cases
                .push((bind(&format!("ARRAY[{names}], ARRAY[1, 2], ARRAY['take', 'take']")), NAME));
        }
    }
    for good in ["x".repeat(200), "\u{e9}".repeat(100), "\u{9078}\u{6319}".into(), "a b".into()] {
        cases.push((bind(&format!("ARRAY['{good}'], ARRAY[1], ARRAY['take']")), ""));
    }
    let no_member = "'default', NULL, NULL, NULL";
    cases.extend([
        (bind("ARRAY[NULL], ARRAY[1], ARRAY['take']"), NAME),
        (bind("ARRAY['n'], ARRAY[NULL]::bigint[], ARRAY['take']"), "each change of a name"),
        (one("NULL", ""), "a name is taken by take or post"),
        (one("'seize'", ""), "a name is taken by take or post"),
        (bind_as(no_member, "ARRAY['n'], ARRAY[1], ARRAY['take']"), "a name is taken or changed"),
        (
            bind_as(no_member, "ARRAY['n'], ARRAY[1], ARRAY['change'], p_tokens => ARRAY[1]"),
            "a name is taken or changed",
        ),
        (bind_as(no_member, "ARRAY['n'], ARRAY[1], ARRAY['post']"), ""),
        (bind_as(no_member, "ARRAY['n'], ARRAY[1], ARRAY['repost'], p_tokens => ARRAY[1]"), ""),
        (bind_as(no_member, "ARRAY['n'], ARRAY[1], ARRAY['drop'], p_tokens => ARRAY[1]"), ""),
        (one("'take'", ""), ""),
        (one("'post'", ""), ""),
    ]);
    for what in ["'change'", "'repost'", "'drop'"] {
        cases.push((one(what, ""), TOKEN));
        cases.push((one(what, ", p_tokens => ARRAY[1]"), ""));
    }
    check(&client, &at.schema, &cases).await;
}

pub async fn a_value_that_cannot_be_is_refused_by_the_rule_it_breaks(at: Spot) {
    let client = scene(&at).await;
    let mut cases = Vec::new();
    for (what, most) in [("take", 4096), ("change", 4096), ("post", 65_536), ("repost", 65_536)] {
        for (bytes, rule) in [(most, ""), (most + 1, DATA)] {
            let data = format!("p_datas => ARRAY[convert_to(repeat('x', {bytes}), 'UTF8')]");
            cases.push((
                one(&format!("'{what}'"), &format!(", p_tokens => ARRAY[1], {data}")),
                rule,
            ));
        }
    }
    let endpoint = |text: &str| one("'take'", &format!(", p_endpoints => ARRAY[{text}]"));
    let most = "x".repeat(255);
    let bytes = "\u{e9}".repeat(127);
    for good in ["NULL", "'h:1'", "'\u{e9}'", &format!("'{most}'"), &format!("'{bytes}'")] {
        cases.push((endpoint(good), ""));
    }
    let long = "x".repeat(256);
    let longer = "\u{e9}".repeat(128);
    for bad in ["", " x", "x ", "a\nb", "\u{7f}", "x\u{85}", &long, &longer] {
        cases.push((endpoint(&format!("'{bad}'")), ENDPOINT));
        // Beside one that is plain, or is not.
        for other in ["h", "\u{e9}"] {
            let two = format!("p_endpoints => ARRAY['{other}', '{bad}']");
            let two = format!("ARRAY['n', 'o'], ARRAY[1, 2], ARRAY['take', 'take'], {two}");
            cases.push((bind(&two), ENDPOINT));
        }
    }
    let index = |text: &str| one("'take'", &format!(", p_indexes => ARRAY[{text}]::jsonb[]"));
    let keys = |count: usize| -> String {
        let all: Vec<_> = (0..count).map(|n| format!("\"k{n}\": \"v\"")).collect();
        format!("'{{{}}}'", all.join(", "))
    };
    for good in ["NULL", "'{}'", "'{\"a\": \"b\"}'", "'{\"\u{e9}\": \"\u{e9}\"}'", &keys(8)] {
        cases.push((index(good), ""));
    }
    let key = format!("'{{\"{}\": \"x\"}}'", "k".repeat(201));
    let text = keys(9);
    let bad = [
        "'[]'",
        "'\"x\"'",
        "'1'",
        "'null'",
        "'{\"a\": 1}'",
        "'{\"a\": null}'",
        "'{\"a\": {}}'",
        "'{\"\": \"x\"}'",
        "'{\"a\": \"\"}'",
        "'{\" a\": \"x\"}'",
        "'{\"a\": \"x \"}'",
        "'{\"a\": \"x\", \"b\": 1}'",
        &key,
        &text,
    ];
    cases.extend(bad.into_iter().map(|bad| (index(bad), INDEX)));
    check(&client, &at.schema, &cases).await;
}

pub async fn a_bind_that_cannot_be_is_refused_by_the_rule_it_breaks(at: Spot) {
    let client = scene(&at).await;
    let what = "ARRAY['n'], ARRAY[1], ARRAY['post']";
    let as_one = |who: &str| bind_as(who, what);
    let fence = format!("{what}, p_election => 'e', p_number => 1");
    let cases = [
        (as_one("NULL, 'm', {life}, 60000000"), "a namespace is named"),
        (as_one("' x', 'm', {life}, 60000000"), "a namespace has"),
        (as_one("'default', NULL, {life}, 60000000"), "a member has an id and a life"),
        (as_one("'default', 'm', NULL, 60000000"), "a member has an id and a life"),
        (as_one("'default', 'm', {life}, 0"), "the ttl is"),
        (as_one("'default', 'm', {life}, NULL"), "the ttl is"),
        (as_one("'default', NULL, NULL, NULL"), ""),
        (as_one("'default', NULL, NULL, 0"), ""),
        (as_one("'default', 'm', {life}, 1"), ""),
        (bind_as("'default', NULL, NULL, NULL", &fence), "only a member can hold the term"),
        (bind_as("'default', 'm', {life}, 60000000", &fence), ""),
        (bind("ARRAY[['n'], ['o']], ARRAY[1, 2], ARRAY['take', 'take']"), "names are a plain"),
        (bind("'[0:1]={n,o}'::text[], ARRAY[1, 2], ARRAY['take', 'take']"), "names are a plain"),
        (bind("'[0:0]={n}'::text[], ARRAY[1], ARRAY['take']"), "names are a plain"),
        (bind("'{}', '{}', '{}'"), ""),
        (bind(&format!("{what}, p_known => 9007199254740992")), "a revision is less"),
        (bind(&format!("{what}, p_seen => 9007199254740992")), "a place in the journal is less"),
        (bind(&format!("{what}, p_known => 9007199254740991")), ""),
        (bind(&format!("{what}, p_seen => 9007199254740991")), ""),
        ("SELECT {s}.names('default', 'some')".into(), "names are asked for as"),
        ("SELECT {s}.join('default', ' x', {life}, 1)".into(), "a member's id has"),
        ("SELECT {s}.join(' x', 'y', {life}, 1)".into(), "a namespace has"),
        ("SELECT {s}.pause('default', ' x')".into(), "an election's name has"),
        ("SELECT {s}.pause(' x', 'e')".into(), "a namespace has"),
        ("SELECT {s}.heartbeat('default', 'm', {life}, 0)".into(), "the ttl is"),
        ("SELECT {s}.claim('default', 'm', {life}, 1, '{e}', '{-1}', '{1}')".into(), "a priority"),
        ("SELECT {s}.claim('default', 'm', {life}, 1, '{e}', '{1}', '{}')".into(), "each bid has"),
        (
            "SELECT {s}.release('default', 'm', {life}, '{e}', '{1}', '{bored}')".into(),
            "a cause is one of",
        ),
        ("SELECT {s}.join('default', 'm', {life}, NULL)".into(), "the ttl is"),
        ("SELECT {s}.claim('default', 'm', {life}, 0, '{e}', '{1}', '{1}')".into(), "the ttl is"),
    ];
    check(&client, &at.schema, &cases).await;
}

pub async fn a_purge_that_cannot_be_is_refused_by_the_rule_it_breaks(at: Spot) {
    let client = scene(&at).await;
    let cases = [
        ("NULL, 0", "a namespace is named"),
        ("'default', NULL", "an age is"),
        ("'default', -1", "an age is"),
        ("'default', 0, p_most => 0", "a step looks at"),
        ("'default', 0, p_most => -1", "a step looks at"),
        ("'default', 0, p_most => NULL", "a step looks at"),
        ("'default', 0, p_dry_run => NULL", "it is a dry run or not"),
        ("'default', 0", ""),
        ("'default', 0, p_most => 1", ""),
        ("'default', 9223372036854775807", ""),
    ];
    let cases = cases.map(|(with, rule)| (format!("SELECT {{s}}.purge({with})"), rule));
    check(&client, &at.schema, &cases).await;
}

/// A batch of bids that are told at once is looked at as closely as one of them.
pub async fn no_bid_among_many_is_looked_at_less_closely(at: Spot) {
    let client = scene(&at).await;
    let claim = |last: &str, priorities: &str, nonces: &str| {
        let names: Vec<_> = (0..9).map(|n| format!("'e{n}'")).collect();
        format!(
            "SELECT {{s}}.claims('default', 'm', {{life}}, 60000000, ARRAY[{}, '{last}'], \
             ARRAY[{priorities}]::int[], ARRAY[{nonces}]::bigint[])",
            names.join(", ")
        )
    };
    let ten = |one: &str| [one; 10].join(", ");
    let long = "x".repeat(201);
    let bytes = "\u{e9}".repeat(101);
    let mut cases = vec![
        (claim("last", &ten("1"), &ten("1")), ""),
        (claim("\u{e9}", &ten("1"), &ten("1")), ""),
        (claim("a b", &ten("1"), &ten("1")), ""),
        (claim(&"x".repeat(200), &ten("1"), &ten("1")), ""),
        (claim("last", &ten("65536"), &ten("1")), "a priority is"),
    ];
    for bad in ["", " x", "x ", "a\nb", "x\u{85}", &long, &bytes] {
        cases.push((claim(bad, &ten("1"), &ten("1")), "an election's name has"));
    }
    check(&client, &at.schema, &cases).await;
    // One that lacks a priority stands for nothing, and is no reason to give it another's.
    let lacking = claim("last", "1", &ten("1"));
    let (code, _) = call(&client, &at.schema, &lacking).await.expect("it is refused");
    assert_eq!(code, "23502");
    // What is new and sound is all won.
    let sql =
        claim("\u{e9}", &ten("1"), &ten("1")).replace("SELECT", "SELECT cardinality(numbers) FROM");
    let sql = sql.replace("{s}", &at.schema).replace("{life}", LIFE);
    assert_eq!(client.query_one(&sql, &[]).await.unwrap().get::<_, i32>(0), 10);
    let count = format!("SELECT count(*) FROM {}.elections WHERE holder = 'm'", at.schema);
    assert_eq!(client.query_one(&count, &[]).await.unwrap().get::<_, i64>(0), 10);
}
