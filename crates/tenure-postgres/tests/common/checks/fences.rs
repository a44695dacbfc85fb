//! What a fence lets pass, of a term and of a name, what it says, and who may call it.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::Spot;

const A: &str = "'00000000-0000-0000-0000-00000000000a'";
const B: &str = "'00000000-0000-0000-0000-00000000000b'";

struct Scene {
    client: Client,
    schema: String,
}

impl Scene {
    async fn of(at: &Spot) -> Self {
        Self { client: at.client().await, schema: at.schema.clone() }
    }

    /// What it gives; or the code, what the message begins with, and the detail.
    async fn said(&self, text: &str) -> String {
        let text = text.replace("{s}", &self.schema).replace("{a}", A).replace("{b}", B);
        match self.client.simple_query(&text).await {
            Ok(said) => {
                let row = |message: &SimpleQueryMessage| match message {
                    SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                };
                said.iter().filter_map(row).collect::<Vec<_>>().join(", ")
            }
            Err(error) => {
                let told = error.as_db_error().expect("an error of the server's");
                let detail = told.detail().unwrap_or_default();
                let detail =
                    if detail.starts_with("the postgres store") { "a store" } else { detail };
                format!("{} {detail}", told.code().code())
            }
        }
    }

    async fn run(&self, text: &str) {
        let said = self.said(text).await;
        assert!(
            !said.starts_with(|first: char| first.is_ascii_digit()) || said.len() < 5,
            "{said}"
        );
    }

    /// Does something first, and takes all of it back.
    async fn after(&self, done: &str, asked: &str) -> String {
        self.run("BEGIN").await;
        if !done.is_empty() {
            self.run(done).await;
        }
        let said = self.said(asked).await;
        self.run("ROLLBACK").await;
        said
    }
}

/// Two namespaces with the same member, who leads e and owns n in both; its second term in
/// one of them.
async fn scene(at: &Spot) -> Scene {
    let scene = Scene::of(at).await;
    for ns in ["one", "two"] {
        scene.run(&format!("SELECT {{s}}.join('{ns}', 'a', {{a}}, 60000000)")).await;
        scene.run(&format!("SELECT {{s}}.join('{ns}', 'b', {{b}}, 60000000)")).await;
        let claim = format!("SELECT {{s}}.claim('{ns}', 'a', {{a}}, 60000000, '{{e}}', '{{1}}'");
        scene.run(&format!("{claim}, '{{1}}')")).await;
        let bind = format!("SELECT {{s}}.bind('{ns}', 'a', {{a}}, 60000000");
        if ns == "one" {
            scene.run(&format!("{claim}, '{{2}}')")).await;
            scene.run(&format!("{bind}, '{{m}}', '{{1}}', '{{take}}')")).await;
        }
        scene.run(&format!("{bind}, '{{n}}', '{{2}}', '{{take}}')")).await;
        scene.run(&format!("{bind}, '{{free}}', '{{3}}', '{{post}}')")).await;
    }
    scene
}

/// F1, L1: a fence passes for exactly the newest term, of this store, of a life that was not
/// ended; and says which number there is instead.
pub async fn a_fence_passes_for_exactly_one_term(at: Spot) {
    let scene = scene(&at).await;
    let fence = |with: &str| format!("SELECT {{s}}.fence({with})");
    let ours = "(SELECT {s}.store_id())";
    let own = format!("'one', 'e', 2, {ours}");
    let cases = [
        ("", fence("'one', 'e', 2"), ""),
        ("", fence("'two', 'e', 1"), ""),
        ("", fence("'one', 'e', 1"), "TN001 2"),
        ("", fence("'one', 'e', 3"), "TN001 2"),
        ("", fence("'two', 'e', 2"), "TN001 1"),
        ("", fence("'one', 'f', 2"), "TN001 0"),
        ("", fence("'none', 'e', 2"), "TN001 0"),
        ("", fence(&own), ""),
        ("", fence(&format!("{own}, {{a}}")), ""),
        ("", fence("'one', 'e', 2, NULL, {a}"), ""),
        ("", fence("'one', 'e', 2, NULL, {b}"), "TN001 2"),
        ("", fence(&format!("{own}, {{b}}")), "TN001 2"),
        ("", fence(&format!("'one', 'e', 1, {ours}")), "TN001 2"),
        ("", fence("'one', 'e', 2, gen_random_uuid()"), "TN002 a store"),
        ("", fence("'one', 'e', 1, gen_random_uuid()"), "TN002 a store"),
        ("SELECT {s}.evict('one', 'a', true)", fence("'one', 'e', 2"), "TN001 2"),
        ("SELECT {s}.evict('two', 'a', true)", fence("'one', 'e', 2"), ""),
        ("SELECT {s}.evict('one', 'a')", fence("'one', 'e', 2"), ""),
        ("SELECT {s}.leave('one', 'a', {a})", fence("'one', 'e', 2"), "TN001 2"),
        ("SELECT {s}.release('one', 'a', {a}, '{e}', '{2}')", fence("'one', 'e', 2"), "TN001 2"),
        // The member's row is another life's.
        (
            "UPDATE {s}.members SET life = gen_random_uuid() WHERE ns = 'one' AND id = 'a'",
            fence("'one', 'e', 2"),
            "TN001 2",
        ),
    ];
    for (done, asked, said) in cases {
        assert_eq!(scene.after(done, &asked).await, said, "{done}; {asked}");
    }
}

/// The same of names; and one that is fenced is busy for all others.
pub async fn a_fence_passes_for_exactly_one_binding(at: Spot) {
    let scene = scene(&at).await;
    let fence = |with: &str| format!("SELECT {{s}}.fence_name({with})");
    let ours = "(SELECT {s}.store_id())";
    let own = format!("'one', 'n', 2, {ours}");
    let posted = "SELECT {s}.fence_name('one', 'free', 9)";
    let cases = [
        ("", fence("'one', 'n', 2"), ""),
        ("", fence("'two', 'n', 1"), ""),
        ("", fence("'one', 'm', 1"), ""),
        ("", fence("'one', 'n', 1"), "TN001 2"),
        ("", fence("'two', 'n', 2"), "TN001 1"),
        ("", fence("'one', 'o', 2"), "TN001 0"),
        ("", fence("'none', 'n', 2"), "TN001 0"),
        ("", posted.to_owned(), "TN001 3"),
        ("", fence(&own), ""),
        ("", fence(&format!("{own}, {{a}}")), ""),
        ("", fence("'one', 'n', 2, NULL, {a}"), ""),
        ("", fence("'one', 'n', 2, NULL, {b}"), "TN001 2"),
        ("", fence(&format!("{own}, {{b}}")), "TN001 2"),
        ("", fence("'one', 'n', 2, gen_random_uuid()"), "TN002 a store"),
        ("", fence("'one', 'n', 1, gen_random_uuid()"), "TN002 a store"),
        ("SELECT {s}.evict('one', 'a')", fence("'one', 'n', 2"), ""),
        ("SELECT {s}.evict('two', 'a', true)", fence("'one', 'n', 2"), ""),
        ("SELECT {s}.evict('one', 'a', true)", fence("'one', 'n', 2"), "TN001 0"),
        // The row is there still, and void.
        (
            "DELETE FROM {s}.members WHERE ns = 'one' AND id = 'a'",
            fence("'one', 'n', 2"),
            "TN001 0",
        ),
        (
            "UPDATE {s}.members SET life = gen_random_uuid() WHERE ns = 'one' AND id = 'a'",
            fence("'one', 'n', 2"),
            "TN001 0",
        ),
    ];
    for (done, asked, said) in cases {
        assert_eq!(scene.after(done, &asked).await, said, "{done}; {asked}");
    }
    let other = Scene::of(&at).await;
    other.run("BEGIN").await;
    other.run(&fence("'one', 'n', 2")).await;
    scene.run("SET statement_timeout = '3s'").await;
    let change = "SELECT outcome FROM {s}.bind('one', 'a', {a}, 60000000, '{n}', '{7}', '{change}', \
                  p_tokens => '{2}')";
    assert_eq!(scene.said(change).await, "busy");
    other.run("ROLLBACK").await;
    assert_eq!(scene.said(change).await, "bound");
}

/// A role that is let in may call the verbs of this schema, and nothing else.
pub async fn a_role_is_let_in_to_the_verbs_alone(at: Spot) {
    let scene = Scene::of(&at).await;
    assert!(scene.said("SELECT {s}.grant_to('no such role')").await.starts_with("42704"));
    let role = format!("let_in_{}", at.schema);
    let all = "SELECT string_agg(n.nspname || '.' || p.proname, ' ' ORDER BY p.proname) \
               FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
               WHERE n.nspname IN ('{s}', '{s}_beside') AND p.proname <> '_spread' AND";
    let may = format!("{all} has_function_privilege('{role}', p.oid, 'EXECUTE')");
    let verbs = format!("{all} n.nspname = '{{s}}' AND p.prosecdef");
    scene.run("BEGIN").await;
    scene.run(&format!("CREATE ROLE {role}")).await;
    // Another schema's verb is not let in to.
    scene
        .run(
            "CREATE SCHEMA {s}_beside; CREATE FUNCTION {s}_beside.verb() RETURNS integer \
             LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; \
             REVOKE ALL ON FUNCTION {s}_beside.verb FROM PUBLIC",
        )
        .await;
    assert_eq!(scene.said(&may).await, "");
    scene.run(&format!("SELECT {{s}}.grant_to('{role}')")).await;
    assert_eq!(scene.said(&may).await, scene.said(&verbs).await);
    scene.run("ROLLBACK").await;
}
