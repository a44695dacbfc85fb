//! Who is told of names, what is forgotten of them, and whose locks delay no other.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::Spot;

const A: &str = "'default', 'a', '00000000-0000-0000-0000-00000000000a', 60000000";
const B: &str = "'other', 'b', '00000000-0000-0000-0000-00000000000b', 60000000";
const DEAD: &str = "'default', 'dead', '00000000-0000-0000-0000-00000000000d', 60000000";

struct Scene {
    client: Client,
    schema: String,
}

impl Scene {
    async fn of(at: &Spot) -> Self {
        let scene = Self { client: at.client().await, schema: at.schema.clone() };
        for who in [A, B, DEAD] {
            scene.run(&format!("SELECT {{s}}.join({who})")).await;
        }
        scene
    }

    async fn run(&self, text: &str) {
        self.client.batch_execute(&text.replace("{s}", &self.schema)).await.unwrap();
    }

    /// The rows that it gives, each as one text.
    async fn rows(&self, text: &str) -> Vec<String> {
        let text = text.replace("{s}", &self.schema);
        let said = self.client.simple_query(&text).await.unwrap();
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        said.iter().filter_map(row).collect()
    }

    async fn one(&self, text: &str) -> String {
        self.rows(text).await.join(", ")
    }

    /// Binds one name, and says whether that was told.
    async fn bind(&self, who: &str, name: &str, nonce: u32) -> String {
        let with = format!("'{{{name}}}', '{{{nonce}}}', '{{take}}'");
        self.one(&format!("SELECT told FROM {{s}}.bind({who}, {with})")).await
    }

    /// Which namespaces' names were told of.
    async fn told(&self) -> String {
        self.one("WITH t AS (DELETE FROM pg_temp.told_of RETURNING ns) SELECT ns FROM t").await
    }
}

/// Q11: a change is told at once, another one right behind it is not; who was answered so
/// tells it later, once; and nothing is told when the queue is half full.
pub async fn names_are_told_of_if_they_changed_and_not_too_often(at: Spot) {
    let scene = Scene::of(&at).await;
    // All of this is taken back.
    scene
        .run(
            "BEGIN; CREATE TEMP TABLE told_of (ns text) ON COMMIT DROP; \
             CREATE TEMP TABLE usage ON COMMIT DROP AS SELECT 0.1::float8 AS usage; \
             CREATE OR REPLACE FUNCTION {s}._queue_usage() RETURNS double precision \
             LANGUAGE sql AS 'SELECT usage FROM pg_temp.usage'; \
             CREATE OR REPLACE FUNCTION {s}._notify_names(p_ns text) RETURNS void LANGUAGE sql \
             AS 'INSERT INTO pg_temp.told_of VALUES (p_ns)'",
        )
        .await;
    let long_ago = "UPDATE {s}.names_at SET told_at = now() - interval '1 minute'";
    let now = "UPDATE {s}.names_at SET told_at = clock_timestamp() + interval '1 minute'";
    assert_eq!(scene.bind(B, "n", 1).await, "t");
    assert_eq!(scene.bind(A, "n", 1).await, "t", "another namespace's names were told just now");
    assert_eq!(scene.told().await, "other, default");
    scene.run(now).await;
    assert_eq!(scene.bind(A, "o", 2).await, "f", "too soon");
    assert_eq!(scene.told().await, "");
    // Asked for of a namespace of which everything was told, and of this one.
    scene.run("SELECT {s}.tell_names('other')").await;
    assert_eq!(scene.told().await, "");
    scene.run("UPDATE pg_temp.usage SET usage = 0.6; SELECT {s}.tell_names('default')").await;
    assert_eq!(scene.told().await, "", "half of the queue is taken");
    scene.run("UPDATE pg_temp.usage SET usage = 0.4; SELECT {s}.tell_names('default')").await;
    assert_eq!(scene.told().await, "default");
    scene.run("SELECT {s}.tell_names('default')").await;
    assert_eq!(scene.told().await, "", "once");
    let told = "SELECT ns || ' ' || (told_rev = rev) || ' ' || (told_at < clock_timestamp()) \
                FROM {s}.names_at ORDER BY ns";
    assert_eq!(scene.one(told).await, "default true true, other true false");
    scene.run(long_ago).await;
    scene.run("UPDATE pg_temp.usage SET usage = 0.6").await;
    assert_eq!(scene.bind(A, "p", 3).await, "f", "half of the queue is taken");
    assert_eq!(scene.told().await, "");
    let told = "SELECT (told_rev < rev) || ' ' || (told_at < now()) FROM {s}.names_at \
                WHERE ns = 'default'";
    assert_eq!(scene.one(told).await, "true true");
    // What changes nothing is not told.
    scene.run("UPDATE pg_temp.usage SET usage = 0.1").await;
    assert_eq!(scene.bind(A, "p", 3).await, "t");
    assert_eq!(scene.told().await, "");
    scene.run("ROLLBACK").await;
}

/// What was dropped more than 16,384 revisions ago is forgotten, of this namespace alone, and
/// not at each change; what is younger is kept.
pub async fn what_was_dropped_long_ago_is_forgotten(at: Spot) {
    let scene = Scene::of(&at).await;
    scene.bind(A, "n", 1).await;
    scene.bind(B, "n", 1).await;
    scene
        .run(
            "UPDATE {s}.names_at SET rev = 64 * 1000 - 3 WHERE ns = 'default'; \
             INSERT INTO {s}.names_gone VALUES ('default', 5, 'old'), ('other', 5, 'old'), \
             ('default', 63000, 'young')",
        )
        .await;
    let kept = "SELECT ns || ' ' || name FROM {s}.names_gone ORDER BY 1";
    scene.bind(A, "o", 2).await;
    assert_eq!(scene.one(kept).await, "default old, default young, other old", "not yet");
    scene.bind(A, "p", 3).await;
    scene.bind(A, "q", 4).await;
    assert_eq!(scene.one(kept).await, "default young, other old");
}

/// A row that another holds is left for later, and delays no caller that does not need it.
pub async fn a_row_that_is_held_is_left_for_later(at: Spot) {
    let scene = Scene::of(&at).await;
    let other = Scene { client: at.client().await, schema: at.schema.clone() };
    scene.run("SET statement_timeout = '3s'").await;
    scene.bind(A, "a", 1).await;
    scene.bind(DEAD, "x", 1).await;
    scene.bind(DEAD, "y", 2).await;
    // Who tells of names holds the row already.
    scene.run("UPDATE {s}.names_at SET told_rev = 0").await;
    other.run("BEGIN; SELECT FROM {s}.names_at FOR UPDATE").await;
    scene.run("SELECT {s}.tell_names('default')").await;
    other.run("ROLLBACK").await;
    assert_eq!(scene.one("SELECT told_rev FROM {s}.names_at").await, "0");
    // A name of a life that ends.
    other.run("BEGIN; SELECT FROM {s}.names WHERE name = 'x' FOR UPDATE").await;
    scene.run("SELECT {s}.leave('default', 'dead', '00000000-0000-0000-0000-00000000000d')").await;
    let left = "SELECT name FROM {s}.names WHERE owner = 'dead' \
                UNION ALL SELECT member FROM {s}.remains";
    assert_eq!(scene.one(left).await, "x, dead");
    // The next bind clears it away, unless it is held still.
    assert_eq!(scene.bind(A, "b", 2).await.len(), 1);
    assert_eq!(scene.one(left).await, "x, dead");
    other.run("ROLLBACK; BEGIN; SELECT FROM {s}.remains FOR UPDATE").await;
    assert_eq!(scene.bind(A, "c", 3).await.len(), 1);
    assert_eq!(scene.one(left).await, "x, dead", "another sees to it");
    other.run("ROLLBACK").await;
    // Of a namespace where nothing remains nothing is cleared away.
    assert_eq!(scene.bind(B, "c", 1).await.len(), 1);
    assert_eq!(scene.one(left).await, "x, dead");
    // Nor is the life done with while it stands for something.
    let stand = "INSERT INTO {s}.candidates VALUES \
                 ('default', 'e', 'dead', '00000000-0000-0000-0000-00000000000d', 1, now())";
    scene.run(stand).await;
    assert_eq!(scene.bind(A, "d", 4).await.len(), 1);
    assert_eq!(scene.one(left).await, "dead");
    scene.run("UPDATE {s}.candidates SET ns = 'other'").await;
    scene.run("INSERT INTO {s}.remains VALUES ('other', gen_random_uuid(), 'gone')").await;
    assert_eq!(scene.bind(A, "e", 5).await.len(), 1);
    assert_eq!(scene.one(left).await, "gone", "of this namespace, and of this life");
    // Where names stand is waited for, as long as one may.
    other.run("BEGIN; SELECT FROM {s}.names_at FOR UPDATE").await;
    let bind = format!("SELECT {{s}}.bind({A}, '{{z}}', '{{9}}', '{{take}}', p_wait_ms => 50)");
    let waited = scene.client.batch_execute(&bind.replace("{s}", &scene.schema)).await;
    let code = waited.err().and_then(|error| Some(error.code()?.code().to_owned()));
    assert_eq!(code.as_deref(), Some("55P03"));
    other.run("ROLLBACK").await;
}
