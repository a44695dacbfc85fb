//! Verbs in the states that are rare: a server that was started anew, a member that has seen
//! more than there is, a caller that is over, and answers that change nothing.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::Spot;

const WHO: [(&str, &str); 8] = [
    ("{a}", "'a', '00000000-0000-0000-0000-00000000000a'"),
    ("{b}", "'b', '00000000-0000-0000-0000-00000000000b'"),
    ("{c}", "'c', '00000000-0000-0000-0000-00000000000c'"),
    ("{d}", "'d', '00000000-0000-0000-0000-00000000000d'"),
    // A life of b's that is over, and a member that never was.
    ("{old}", "'b', '00000000-0000-0000-0000-0000000000bb'"),
    ("{stranger}", "'z', '00000000-0000-0000-0000-0000000000ff'"),
    ("{none}", "NULL, NULL"),
    ("{t}", "60000000"),
];

/// `a` leads e in both namespaces and owns x; b is next in one.
const SCENE: [&str; 10] = [
    "SELECT {s}.join('one', {a}, {t}), {s}.join('two', {a}, {t})",
    "SELECT {s}.join('one', {b}, {t}, p_takes_over => true)",
    "SELECT {s}.join('one', {c}, {t})",
    "SELECT {s}.join('two', {c}, {t}), {s}.join('two', {d}, {t})",
    "SELECT {s}.claim('one', {a}, {t}, '{e}', '{9}', '{1}')",
    "SELECT {s}.claim('two', {a}, {t}, '{e}', '{9}', '{1}')",
    "SELECT {s}.claim('one', {b}, {t}, '{e}', '{5}', '{1}')",
    "SELECT {s}.bind('one', {a}, {t}, '{x}', '{1}', '{take}')",
    "SELECT {s}.bind('two', {a}, {t}, '{x}', '{1}', '{take}')",
    // A namespace whose journal is longer than any, and one that is shorter.
    "INSERT INTO {s}.namespaces (ns, seq) VALUES ('long', 100000), ('short', 0)",
];

struct Scene {
    client: Client,
    schema: String,
}

impl Scene {
    async fn of(at: &Spot) -> Self {
        let scene = Self::beside(at).await;
        for text in SCENE {
            scene.rows(text).await;
        }
        scene
    }

    async fn beside(at: &Spot) -> Self {
        Self { client: at.client().await, schema: at.schema.clone() }
    }

    /// The rows that it gives, each as one text; or the code of what it fails with.
    async fn rows(&self, text: &str) -> String {
        let put = |text: String, (name, by): &(&str, &str)| text.replace(name, by);
        let text = WHO.iter().fold(text.replace("{s}", &self.schema), put);
        let said = match self.client.simple_query(&text).await {
            Ok(said) => said,
            Err(error) => return error.code().map_or(error.to_string(), |c| c.code().to_owned()),
        };
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
            _ => None,
        };
        said.iter().filter_map(row).collect::<Vec<_>>().join(", ")
    }

    /// What a query gives after something was done, all of which is taken back.
    async fn after(&self, done: &[&str], asked: &str) -> String {
        self.rows("BEGIN; SET LOCAL statement_timeout = '3s'").await;
        for text in done {
            let said = self.rows(text).await;
            assert!(!said.starts_with("57") && !said.starts_with("55"), "{text}: {said}");
        }
        let said = self.rows(asked).await;
        self.rows("ROLLBACK").await;
        said
    }
}

const HAND_OVER: &str = "SELECT {s}.release('one', {a}, '{e}', '{1}', p_hand_over_us => {t}";

/// M6: where the server was started anew no number is below the clock, whichever verb gives
/// it out; where it was not, numbers go on by one. Each looks whether it was.
pub async fn no_number_is_below_the_clock_of_another_start(at: Spot) {
    let scene = Scene::of(&at).await;
    let started = "UPDATE {s}.settings SET started_at = started_at - interval '1 s'";
    let moved = "UPDATE {s}.settings SET file = 'another'";
    let known = "SELECT s.started_at = pg_postmaster_start_time() \
                 AND s.file = pg_relation_filepath(s.tableoid) FROM {s}.settings s";
    let locked = "SELECT {s}.fence('one', 'e', 1)";
    let handed = format!("{HAND_OVER})");
    let claim = "SELECT {s}.claim('one', {b}, {t}, '{f}', '{5}', '{1}')";
    let many = "SELECT {s}.claim('one', {b}, {t}, '{f,g}', '{5,5}', '{1,1}')";
    let bind = "SELECT {s}.bind('one', {b}, {t}, '{y}', '{1}', '{take}')";
    let number = |of: &str| format!("SELECT number > 1000000 FROM {{s}}.elections WHERE {of}");
    let e = number("ns = 'one' AND name = 'e'");
    let f = number("name = 'f'");
    let token = "SELECT token > 1000000 FROM {s}.names WHERE name = 'y'".to_owned();
    for (verbs, asked) in [
        (&[claim][..], &f),
        (&[many], &f),
        (&[&handed], &e),
        (&[locked, &handed], &e),
        (&[bind], &token),
    ] {
        let usual = scene.after(verbs, asked).await;
        assert_eq!(usual, "f", "{verbs:?}: it is the same server");
        // A table that was written anew is another file, and the same table.
        for (changed, is_above) in [(started, "t"), (moved, "f")] {
            let all: Vec<_> = [&[changed], verbs].concat();
            assert_eq!(scene.after(&all, asked).await, is_above, "{all:?}");
            assert_eq!(scene.after(&all, known).await, "t", "{all:?}: it is known from now on");
        }
    }
}

/// M6: a member that has seen more than there is raises the era before a number is given out;
/// no other request does, nor one that only gives something back.
pub async fn who_has_seen_more_raises_the_era(at: Spot) {
    let scene = Scene::of(&at).await;
    let era = "SELECT era FROM {s}.settings";
    let bind = |who: &str, name: &str, with: &str| {
        format!("SELECT {{s}}.bind('one', {who}, '{{{name}}}', '{{7}}', '{{post}}', {with})")
    };
    let b = "{b}, {t}";
    let no_member = "{none}, NULL";
    let release = |who: &str, with: &str| {
        format!("SELECT {{s}}.release('one', {who}, '{{e}}', '{{1}}', {with})")
    };
    let over = "p_hand_over_us => {t}, p_seen => 1000";
    let condemned = "SELECT {s}.evict('one', 'b')";
    let taken = |with: &str| bind(b, "x", with);
    let seq = "(SELECT seq FROM {s}.namespaces WHERE ns = 'one')";
    let cases = [
        (release("{a}", over), "1"),
        (release("{a}", "p_seen => 1000"), "0"),
        (release("{a}", &format!("p_hand_over_us => {{t}}, p_seen => {seq}")), "0"),
        (release("{stranger}", over), "0"),
        (release("{old}", over), "0"),
        // It is a member of the other namespace alone.
        (release("{d}", over), "0"),
        (bind(b, "y", "p_seen => 1000"), "1"),
        (bind(b, "y", &format!("p_seen => {seq}")), "0"),
        (bind(b, "y", "p_known => 1000"), "1"),
        (bind(b, "y", "p_known => 1"), "0"),
        (bind(no_member, "y", "p_seen => 1000"), "0"),
        (bind(no_member, "y", "p_known => 1000"), "0"),
        (bind("{stranger}, {t}", "y", "p_seen => 1000"), "0"),
        // Also where the name is taken, and nothing is changed.
        (taken("p_seen => 1000"), "1"),
        (taken("p_known => 1000"), "1"),
        (taken("p_known => 1"), "0"),
        (bind(no_member, "x", "p_known => 1000"), "0"),
        ("SELECT {s}.claim('one', {b}, {t}, '{f}', '{1}', '{1}', p_seen => 1000)".into(), "1"),
        ("SELECT {s}.join('one', {d}, {t}, p_seen => 1000)".into(), "1"),
        (format!("SELECT {{s}}.join('one', {{d}}, {{t}}, p_seen => {seq})"), "0"),
        ("SELECT {s}.join('new', {d}, {t}, p_seen => 1)".into(), "1"),
        ("SELECT {s}.join('new', {d}, {t})".into(), "0"),
    ];
    for (verb, raised) in cases {
        assert_eq!(scene.after(&[&verb], era).await, raised, "{verb}");
    }
    assert_eq!(scene.after(&[condemned, &taken("p_known => 1000")], era).await, "0");
    // What it is elected under then is of the era.
    let claim = "SELECT {s}.claim('one', {b}, {t}, '{f}', '{1}', '{1}', p_seen => 1000)";
    let number = "SELECT number >= 65536 FROM {s}.elections WHERE name = 'f'";
    assert_eq!(scene.after(&[claim], number).await, "t");
}

/// M1: a life that is over binds nothing and is told so, also where the name is taken anyhow; and
/// a fence is looked at first.
pub async fn a_caller_that_is_over_is_told_so(at: Spot) {
    let scene = Scene::of(&at).await;
    let bind = |ns: &str, who: &str, name: &str, with: &str| {
        format!(
            "SELECT outcome FROM {{s}}.bind('{ns}', {who}, {{t}}, '{{{name}}}', '{{7}}', \
             '{{take}}'{with})"
        )
    };
    let expired = "UPDATE {s}.members SET expires_at = now() - interval '1 s' \
                   WHERE ns = 'one' AND id = 'c'";
    let condemned = "SELECT {s}.evict('one', 'c')";
    let fence = ", p_election => 'e', p_number => ";
    for name in ["x", "y"] {
        let as_usual = if name == "x" { "taken" } else { "bound" };
        let c = bind("one", "{c}", name, "");
        assert_eq!(scene.after(&[], &c).await, as_usual);
        assert_eq!(scene.after(&[expired], &c).await, "ended");
        assert_eq!(scene.after(&[condemned], &c).await, "ended");
        assert_eq!(scene.after(&[expired], &bind("two", "{c}", name, "")).await, as_usual);
        assert_eq!(scene.after(&[], &bind("one", "{old}", name, "")).await, "superseded");
        assert_eq!(scene.after(&[], &bind("one", "{stranger}", name, "")).await, "ended");
        // It is a member of the other namespace alone.
        assert_eq!(scene.after(&[], &bind("one", "{d}", name, "")).await, "ended");
        let fenced = bind("one", "{c}", name, &format!("{fence}1"));
        assert_eq!(scene.after(&[], &fenced).await, "fenced");
        for (number, outcome) in
            [("1", if name == "x" { "taken" } else { "bound" }), ("2", "fenced")]
        {
            let a = bind("one", "{a}", name, &format!("{fence}{number}"));
            assert_eq!(scene.after(&[], &a).await, outcome, "{number}");
        }
    }
}

/// A bid waits for a step in the namespace, unless it stands already and another leads.
pub async fn a_bid_waits_unless_it_can_change_nothing(at: Spot) {
    let scene = Scene::of(&at).await;
    // In each a leads; b stands for the first alone, and what might be mistaken for that in
    // the others.
    let states = [
        ("quiet", ""),
        ("priority", "UPDATE {s}.candidates SET priority = 6 WHERE election = 'priority'"),
        ("unstood", "DELETE FROM {s}.candidates WHERE election = 'unstood'"),
        ("former", "UPDATE {s}.candidates SET life = gen_random_uuid() WHERE election = 'former'"),
        ("member", "UPDATE {s}.candidates SET member = 'q' WHERE election = 'member'"),
        ("space", "UPDATE {s}.candidates SET ns = 'two' WHERE election = 'space'"),
        (
            "own",
            "UPDATE {s}.elections SET holder = 'b', \
                 life = '00000000-0000-0000-0000-00000000000b' WHERE name = 'own'",
        ),
        ("void", "UPDATE {s}.elections SET life = gen_random_uuid() WHERE name = 'void'"),
        ("vacant", "UPDATE {s}.elections SET holder = NULL, life = NULL WHERE name = 'vacant'"),
        (
            "elsewhere",
            "UPDATE {s}.elections SET holder = 'd', \
                       life = '00000000-0000-0000-0000-00000000000d' WHERE name = 'elsewhere'",
        ),
        (
            "lapsed",
            "UPDATE {s}.elections SET heir_until = now() - interval '1 s' \
                    WHERE name = 'lapsed'",
        ),
        ("far", "UPDATE {s}.elections SET ns = 'two' WHERE name = 'far'"),
    ];
    for (name, state) in states {
        for who in ["{a}, {t}, '{N}', '{9}'", "{b}, {t}, '{N}', '{5}'"] {
            let who = who.replace('N', name);
            scene.rows(&format!("SELECT {{s}}.claim('one', {who}, '{{1}}')")).await;
        }
        scene.rows(state).await;
    }
    let other = Scene::beside(&at).await;
    other.rows("BEGIN").await;
    other.rows("SELECT {s}._enter('one', 0)").await;
    for (name, _) in states {
        let bid = format!(
            "SELECT outcome FROM {{s}}.claim('one', {{b}}, {{t}}, '{{{name}}}', '{{5}}', '{{9}}', \
             p_wait_ms => 50)"
        );
        let said = scene.rows(&bid).await;
        assert_eq!(said, if name == "quiet" { "held" } else { "55P03" }, "{name}");
    }
    let two = "SELECT outcome FROM {s}.claim('one', {b}, {t}, '{quiet,unstood}', '{5,5}', '{9,9}', \
               p_wait_ms => 50)";
    assert_eq!(scene.rows(two).await, "55P03");
    // A holder whose ttl has run out leads no longer.
    scene
        .rows(
            "UPDATE {s}.members SET expires_at = now() - interval '1 s' \
                WHERE ns = 'one' AND id = 'a'",
        )
        .await;
    let bid = "SELECT {s}.claim('one', {b}, {t}, '{quiet}', '{5}', '{9}', p_wait_ms => 50)";
    assert_eq!(scene.rows(bid).await, "55P03");
    other.rows("ROLLBACK").await;
}

/// What changes nothing waits for the disk and the standbys as what does: it leaves something
/// in the log. What only looks does not.
pub async fn an_answer_that_changes_nothing_waits_as_a_write(at: Spot) {
    let scene = Scene::of(&at).await;
    let writes = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL";
    let waits = [
        "SELECT {s}.release('one', {stranger}, '{e}', '{1}')",
        "SELECT {s}.release('one', {b}, '{e}', '{1}', p_hand_over_us => {t})",
        "SELECT {s}.leave('one', {stranger})",
        "SELECT {s}.leave('one', {old})",
        "SELECT {s}.leave('one', {d})",
        "SELECT {s}.resume('one', 'e')",
        "SELECT {s}.evict('one', 'z')",
    ];
    for verb in waits {
        assert_eq!(scene.after(&[verb], writes).await, "t", "{verb}");
    }
    let members = "SELECT count(*) FROM {s}.members";
    for verb in waits {
        assert_eq!(scene.after(&[verb], members).await, "6", "{verb}");
    }
    let leave = "SELECT {s}.leave('one', {b})";
    assert_eq!(scene.after(&[leave], members).await, "5");
    for verb in ["SELECT {s}.claim('one', {b}, {t}, '{e}', '{5}', '{2}')", "SELECT {s}.read('one')"]
    {
        assert_eq!(scene.after(&[verb], writes).await, "f", "{verb}");
    }
    for verb in ["ask_step_down('one', 'e')", "pause('one', 'e')", "evict('one', 'b')"] {
        let asked = format!("SELECT outcome FROM {{s}}.{verb}");
        scene.rows(&asked).await;
        assert_eq!(scene.after(&[], &asked).await, "unchanged");
        assert_eq!(scene.after(&[&asked], writes).await, "t", "{verb}");
    }
}

/// What a claim answers in SQL, bid by bid.
pub async fn a_claim_answers_each_bid(at: Spot) {
    let scene = Scene::of(&at).await;
    let asked = |who: &str| {
        format!(
            "SELECT concat_ws(' ', bid, outcome, number, elected_ms > 0, view->>'election') \
             FROM {{s}}.claim('one', {who}, {{t}}, '{{e,new}}', '{{5,5}}', '{{9,9}}')"
        )
    };
    assert_eq!(scene.after(&[], &asked("{c}")).await, "1 held e, 2 won 1 t");
    assert_eq!(scene.after(&[], &asked("{stranger}")).await, "0 ended");
    assert_eq!(scene.after(&[], &asked("{old}")).await, "0 superseded");
    // A number that is missing ends the candidacy alone, wherever it is missing.
    let stands = "SELECT count(*) FROM {s}.candidates WHERE member = 'b'";
    for numbers in ["{NULL}", "{}"] {
        let release = format!("SELECT {{s}}.release('one', {{b}}, '{{e}}', '{numbers}')");
        assert_eq!(scene.after(&[], stands).await, "1");
        assert_eq!(scene.after(&[&release], stands).await, "0", "{numbers}");
    }
    // A successor is waited for, and not elected, where nothing is handed over.
    let kept = "SELECT {s}.release('one', {a}, '{e}', '{1}', NULL, ARRAY['b'], '{5000000}')";
    let heir = "SELECT concat_ws(' ', holder, heir) FROM {s}.elections WHERE ns = 'one'";
    assert_eq!(scene.after(&[kept], heir).await, "b");
    assert_eq!(scene.after(&[kept], "SELECT holds FROM {s}.members WHERE id = 'b'").await, "0");
}
