//! What a verb does is of one namespace, one election and one member: two namespaces with the
//! same members, lives, elections and names, and all rows that are none of the verb's.

use tokio_postgres::Client;

use super::Spot;

/// Members, by their lives; they are the same in both namespaces.
const WHO: [(&str, &str); 5] = [
    ("{a}", "'a', '00000000-0000-0000-0000-00000000000a'"),
    ("{b}", "'b', '00000000-0000-0000-0000-00000000000b'"),
    ("{c}", "'c', '00000000-0000-0000-0000-00000000000c'"),
    ("{d}", "'d', '00000000-0000-0000-0000-00000000000d'"),
    ("{t}", "60000000"),
];

/// `a` leads e and f under one number, `b` and `c` are next; `d` has no rival.
const SCENE: [&str; 10] = [
    "join('{ns}', {a}, {t}, '{h:1}', 'm')",
    "join('{ns}', {b}, {t}, p_takes_over => true)",
    "join('{ns}', {c}, {t}, p_takes_over => true)",
    "join('{ns}', {d}, {t})",
    "claim('{ns}', {a}, {t}, '{e,f}', '{9,9}', '{1,1}')",
    "claim('{ns}', {b}, {t}, '{e,f}', '{5,5}', '{1,1}')",
    "claim('{ns}', {c}, {t}, '{e,f}', '{4,4}', '{1,1}')",
    "claim('{ns}', {d}, {t}, '{g}', '{4}', '{1}')",
    "bind('{ns}', {a}, {t}, '{x,y}', '{1,2}', '{take,take}')",
    "bind('{ns}', {d}, {t}, '{z}', '{1}', '{take}')",
];

/// All that is there, but for one election and some members of one namespace.
const REST: &str = "
    SELECT 'e ' || e.ns || e.name || concat_ws(' ', number, era, won_by, won_nonce, handed, holder,
           life, elected_at, priority, paused, pause_reason, asked, asked_reason, asked_to, heir,
           heir_until, changed_at) AS row
        FROM {s}.elections e WHERE NOT (e.ns = 'one' AND e.name = 'e')
    UNION ALL SELECT 'c ' || c::text FROM {s}.candidates c
        WHERE NOT (c.ns = 'one' AND (c.election = 'e' OR c.member = ANY (ARRAY[{members}])))
    UNION ALL SELECT 'm ' || m::text FROM {s}.members m
        WHERE NOT (m.ns = 'one' AND m.id = ANY (ARRAY[{members}]))
    UNION ALL SELECT 'p ' || p::text FROM {s}.profiles p
        WHERE NOT (p.ns = 'one' AND p.id = ANY (ARRAY[{members}]))
    UNION ALL SELECT 'n ' || n::text FROM {s}.names n
        WHERE NOT (n.ns = 'one' AND (n.name = 'x' OR n.owner = ANY (ARRAY[{members}])))
    UNION ALL SELECT 's ' || n::text FROM {s}.namespaces n WHERE n.ns <> 'one'
    UNION ALL SELECT 't ' || t::text FROM {s}.told t WHERE t.ns <> 'one'
    UNION ALL SELECT 'a ' || a::text FROM {s}.names_at a WHERE a.ns <> 'one'
    UNION ALL SELECT 'g ' || g::text FROM {s}.names_gone g WHERE g.ns <> 'one'
    UNION ALL SELECT 'r ' || r::text FROM {s}.remains r WHERE r.ns <> 'one'
    UNION ALL SELECT 'f ' || f::text FROM {s}.forgotten f WHERE f.ns <> 'one'
    ORDER BY 1";

/// What is done first, what is done then, and the members whose rows that may change.
const VERBS: [(&str, &str, &str); 27] = [
    ("", "release('one', {a}, '{e}', '{1}', p_hand_over_us => {t})", "a,b"),
    // A row that was locked before is handed over by another statement.
    ("fence('one', 'e', 1)", "release('one', {a}, '{e}', '{1}', p_hand_over_us => {t})", "a,b"),
    ("", "release('one', {a}, '{e}', '{1}', p_grace_us => {t})", "a,b"),
    ("", "release('one', {a}, '{e}', '{NULL}')", "a"),
    ("", "release('one', {b}, '{e}', '{NULL}')", "b"),
    ("", "release('one', {b}, '{e}', '{1}')", ""),
    ("", "release('one', {a}, '{e}', '{2}')", ""),
    ("", "release('one', {a}, '{e}', '{2}', p_hand_over_us => {t})", ""),
    ("pause('one', 'e')", "release('one', {a}, '{e}', '{1}', p_hand_over_us => {t})", "a,b"),
    ("", "ask_step_down('one', 'e')", "a"),
    ("", "pause('one', 'e')", ""),
    ("pause('one', 'e'), {s}.pause('one', 'f'), {s}.pause('two', 'e')", "resume('one', 'e')", ""),
    ("", "claim('one', {a}, {t}, '{e}', '{8}', '{2}')", "a"),
    ("", "claim('one', {a}, {t}, '{e}', '{9}', '{1}')", "a"),
    ("", "claim('one', {b}, {t}, '{e}', '{6}', '{2}')", "b"),
    ("", "claim('one', {d}, {t}, '{e}', '{6}', '{2}')", "d"),
    (
        "release('one', {a}, '{e,f}', '{1,1}', p_hand_over_us => {t}), \
         {s}.release('two', {a}, '{e,f}', '{1,1}', p_hand_over_us => {t})",
        "heartbeat('one', {b}, {t}, 0, '{e}', '{2}')",
        "b",
    ),
    (
        "release('one', {a}, '{e,f}', '{1,1}', p_hand_over_us => {t}), \
         {s}.release('two', {a}, '{e,f}', '{1,1}', p_hand_over_us => {t})",
        "claim('one', {b}, {t}, '{e}', '{5}', '{2}')",
        "b",
    ),
    ("", "heartbeat('one', {a}, {t}, 0, '{e}', '{1}')", "a"),
    ("", "heartbeat('one', {a}, {t})", "a"),
    ("", "join('one', {a}, {t}, '{h:2}', 'n', p_takes_over => true)", "a"),
    ("", "evict('one', 'a')", "a"),
    ("", "evict('one', 'a', true)", "a"),
    ("", "leave('one', {a})", "a"),
    ("", "bind('one', {a}, {t}, '{x}', '{3}', '{change}', p_tokens => '{1}')", "a"),
    ("", "bind('one', {a}, {t}, '{x}', '{3}', '{drop}', p_tokens => '{1}')", "a"),
    ("", "bind('one', {b}, {t}, '{x}', '{3}', '{take}')", "b"),
];

struct Scene {
    client: Client,
    schema: String,
}

impl Scene {
    async fn of(at: &Spot) -> Self {
        let scene = Self { client: at.client().await, schema: at.schema.clone() };
        for ns in ["one", "two"] {
            for text in SCENE {
                scene.call(&text.replace("{ns}", ns)).await;
            }
        }
        scene
    }

    fn put(&self, text: &str) -> String {
        let put = |text: String, (name, by): &(&str, &str)| text.replace(name, by);
        WHO.iter().fold(text.replace("{s}", &self.schema), put)
    }

    async fn run(&self, text: &str) {
        let text = self.put(text);
        self.client.batch_execute(&text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }

    async fn call(&self, verb: &str) {
        self.run(&format!("SELECT {{s}}.{verb}")).await;
    }

    /// All rows but those that the verb is about.
    async fn rest(&self, members: &str) -> Vec<String> {
        let members: Vec<_> = members.split(',').map(|id| format!("'{id}'")).collect();
        let text = self.put(&REST.replace("{members}", &members.join(",")));
        let rows = self.client.query(&text, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// H5, E1: whatever a verb does, it does to the election, the member and the namespace that
/// it names, and to no row beside them.
pub async fn what_a_verb_does_is_done_to_nothing_else(at: Spot) {
    let scene = Scene::of(&at).await;
    for (first, verb, members) in VERBS {
        scene.run("BEGIN").await;
        if !first.is_empty() {
            scene.call(first).await;
        }
        let before = scene.rest(members).await;
        scene.call(verb).await;
        let after = scene.rest(members).await;
        scene.run("ROLLBACK").await;
        let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
        let gone: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
        assert!(new.is_empty() && gone.is_empty(), "{first}; {verb}: {gone:?} became {new:?}");
    }
}

/// C40: a term that is fenced at this moment is given back at once and not handed over, also
/// beside others of the same number that are not fenced.
pub async fn no_release_waits_for_a_fenced_term(at: Spot) {
    let scene = Scene::of(&at).await;
    let other = Scene { client: at.client().await, schema: at.schema.clone() };
    scene.run("SET statement_timeout = '3s'").await;
    other.run("BEGIN; SELECT {s}.fence('one', 'e', 1)").await;
    scene.run("BEGIN").await;
    scene.call("release('one', {a}, '{e}', '{1}', p_hand_over_us => {t}, p_grace_us => {t})").await;
    let text = scene.put("SELECT holder, heir FROM {s}.elections WHERE ns = 'one' AND name = 'e'");
    let row = scene.client.query_one(&text, &[]).await.unwrap();
    let holder: Option<String> = row.get(0);
    let heir: Option<String> = row.get(1);
    assert_eq!((holder, heir.as_deref()), (None, Some("b")));
    scene.run("ROLLBACK").await;
    // Nor does a bid wait for it: its holder is over, and the row is locked.
    scene.run("UPDATE {s}.members SET expires_at = now() - interval '1 s' WHERE id = 'a'").await;
    let bid = "SELECT outcome FROM {s}.claim('one', {b}, {t}, '{e}', '{5}', '{2}')";
    let outcome: String = scene.client.query_one(&scene.put(bid), &[]).await.unwrap().get(0);
    assert_eq!(outcome, "fenced");
    other.run("ROLLBACK").await;
    let bid = bid.replace("'{2}'", "'{3}'");
    let outcome: String = scene.client.query_one(&scene.put(&bid), &[]).await.unwrap().get(0);
    assert_eq!(outcome, "won");
}
