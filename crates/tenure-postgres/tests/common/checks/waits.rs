//! What each verb of SQL waits for, how long, and what it sets for its transaction.

use tokio_postgres::Client;

use super::Spot;

/// Lives, by their members.
const LIVES: [(&str, &str); 4] = [
    ("{m}", "'m', '00000000-0000-0000-0000-000000000001'"),
    ("{n}", "'n', '00000000-0000-0000-0000-000000000002'"),
    ("{dead}", "'dead', '00000000-0000-0000-0000-000000000003'"),
    ("{k}", "'k', '00000000-0000-0000-0000-000000000004'"),
];

/// Two members, one of whom leads `e`; one whose ttl has run out, and who owns `x`; and one
/// who leads `f` by one call.
const SCENE: [&str; 7] = [
    "SELECT {s}.join('default', {m}, 60000000)",
    "SELECT {s}.join('default', {n}, 60000000)",
    "SELECT {s}.join('default', {dead}, 60000000)",
    "SELECT {s}.claim('default', {m}, 60000000, '{e}', '{1}', '{1}')",
    "SELECT {s}.bind('default', {dead}, 60000000, '{x}', '{1}', '{take}')",
    "SELECT {s}.try_lead('default', 'f', 'o', '60 s')",
    "UPDATE {s}.members SET expires_at = now() - interval '1 s' WHERE id = 'dead'",
];

/// What changes elections or ends a life does so while no other request does.
const ENTER: [&str; 17] = [
    "{s}.join('default', {k}, 60000000, p_wait_ms => 50)",
    "{s}.join('default', {m}, 60000000, p_wait_ms => 50)",
    "{s}.heartbeat('default', {m}, 60000000, 50, '{e}', '{1}')",
    "{s}.leave('default', {m}, 50)",
    "{s}.claim('default', {n}, 60000000, '{g}', '{1}', '{1}', p_wait_ms => 50)",
    "{s}.claims('default', {n}, 60000000, '{g}', '{1}', '{1}', p_wait_ms => 50)",
    "{s}.claims('default', {n}, 60000000, '{g,h}', '{1,1}', '{1,1}', p_wait_ms => 50)",
    "{s}.release('default', {m}, '{e}', '{1}', p_wait_ms => 50)",
    "{s}.ask_step_down('default', 'e', p_wait_ms => 50)",
    "{s}.pause('default', 'e', p_wait_ms => 50)",
    "{s}.resume('default', 'e', p_wait_ms => 50)",
    "{s}.evict('default', 'n', p_wait_ms => 50)",
    "{s}.purge('default', 0, p_wait_ms => 50)",
    "{s}.bind('default', {n}, 60000000, '{x}', '{1}', '{take}', p_wait_ms => 50)",
    "{s}.bind('default', {n}, 60000000, '{y}', '{1}', '{take}', p_wait_ms => 50, p_seen => 900)",
    "{s}.try_lead('default', 'g', 'p', '60 s')",
    "{s}.step_down('default', 'f', 'o')",
];

/// What waits for no transaction that is in the namespace.
const PASS: [&str; 12] = [
    "{s}.heartbeat('default', {m}, 60000000, 50)",
    "{s}.leave('default', {k}, 50)",
    "{s}.claim('default', {n}, 60000000, '{e}', '{1}', '{1}', p_wait_ms => 50)",
    "{s}.bind('default', {n}, 60000000, '{y}', '{1}', '{take}', p_wait_ms => 50)",
    "{s}.purge('default', 0, p_dry_run => true, p_wait_ms => 50)",
    "{s}.try_lead('default', 'f', 'o', '60 s')",
    "{s}.step_down('default', 'f', 'stranger')",
    "{s}.fence('default', 'e', 1)",
    "{s}.read('default')",
    "{s}.look('default', 'e', {n})",
    "{s}.names('default')",
    "{s}.positions('{default}')",
];

fn put(text: &str, schema: &str) -> String {
    let put = |text: String, (name, life): &(&str, &str)| text.replace(name, life);
    LIVES.iter().fold(text.replace("{s}", schema), put)
}

async fn scene(at: &Spot) -> Client {
    let client = at.client().await;
    for text in SCENE {
        client.batch_execute(&put(text, &at.schema)).await.unwrap();
    }
    // So that a candidate that stands already has nothing to change.
    let stand = "SELECT {s}.claim('default', {n}, 60000000, '{e}', '{1}', '{1}')";
    client.batch_execute(&put(stand, &at.schema)).await.unwrap();
    client
}

/// Calls it as a client that does not wait for ever, and takes it back. The code, if it failed.
async fn call(client: &Client, verb: &str, schema: &str) -> Option<String> {
    client.batch_execute("BEGIN; SET LOCAL statement_timeout = '3s'").await.unwrap();
    if verb.contains("try_lead") || verb.contains("step_down('default', 'f'") {
        client.batch_execute("SET LOCAL lock_timeout = '50ms'").await.unwrap();
    }
    let called = client.batch_execute(&format!("SELECT {}", put(verb, schema))).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    called.err().map(|error| error.as_db_error().unwrap().code().code().to_owned())
}

/// C41: whatever changes an election waits for a step in the namespace, as long as it
/// may; all else does not, and everything goes on afterwards.
pub async fn what_changes_a_namespace_waits_for_the_step_that_is_in_it(at: Spot) {
    let client = scene(&at).await;
    let mut other = at.client().await;
    let tx = other.transaction().await.unwrap();
    let enter = format!("SELECT {}._enter('default', 0)", at.schema);
    tx.batch_execute(&enter).await.unwrap();
    for verb in ENTER {
        assert_eq!(call(&client, verb, &at.schema).await.as_deref(), Some("55P03"), "{verb}");
    }
    for verb in PASS {
        assert_eq!(call(&client, verb, &at.schema).await, None, "{verb}");
    }
    tx.rollback().await.unwrap();
    for verb in ENTER.iter().chain(&PASS) {
        assert_eq!(call(&client, verb, &at.schema).await, None, "{verb}");
    }
}

/// A row that another holds is waited for as long as the caller may wait.
pub async fn a_heartbeat_waits_for_its_row_as_long_as_it_may(at: Spot) {
    let client = scene(&at).await;
    let mut other = at.client().await;
    let tx = other.transaction().await.unwrap();
    let hold = format!("SELECT FROM {}.members WHERE id = 'm' FOR UPDATE", at.schema);
    tx.batch_execute(&hold).await.unwrap();
    let waits = [
        "{s}.heartbeat('default', {m}, 60000000, 50)",
        "{s}.bind('default', {m}, 60000000, '{y}', '{1}', '{take}', p_wait_ms => 50)",
    ];
    for verb in waits {
        assert_eq!(call(&client, verb, &at.schema).await.as_deref(), Some("55P03"), "{verb}");
    }
}

/// What a verb sets for its transaction: only what has to be.
pub async fn a_verb_sets_only_what_has_to_be_set(at: Spot) {
    let client = scene(&at).await;
    let beat = "{s}._beat((SELECT handle FROM {s}.members WHERE id = 'm'), 60000000, 0, 1)";
    let cases = [
        ("{s}._prepare(70)", "lock_timeout", "7s", "70ms"),
        ("{s}._prepare(0)", "lock_timeout", "7s", "7s"),
        ("{s}._prepare(0)", "idle_in_transaction_session_timeout", "0", "5s"),
        ("{s}._prepare(0)", "idle_in_transaction_session_timeout", "8s", "8s"),
        ("{s}._prepare(0)", "client_min_messages", "error", "warning"),
        ("{s}._prepare(0)", "client_min_messages", "notice", "notice"),
        ("{s}._prepare(0)", "synchronous_commit", "off", "on"),
        ("{s}._prepare(0)", "synchronous_commit", "local", "on"),
        ("{s}._prepare(0)", "synchronous_commit", "remote_write", "on"),
        ("{s}._prepare(0)", "synchronous_commit", "on", "on"),
        ("{s}._prepare(0)", "synchronous_commit", "remote_apply", "remote_apply"),
        (beat, "synchronous_commit", "off", "on"),
        (beat, "synchronous_commit", "local", "on"),
        (beat, "synchronous_commit", "on", "on"),
        (beat, "synchronous_commit", "remote_apply", "remote_apply"),
    ];
    for (verb, setting, before, after) in cases {
        let verb = put(verb, &at.schema);
        client.batch_execute(&format!("BEGIN; SET {setting} = '{before}'")).await.unwrap();
        let did: bool = client.query_one(&format!("SELECT {verb}"), &[]).await.unwrap().get(0);
        let shown = client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap();
        client.batch_execute("ROLLBACK").await.unwrap();
        let shown: String = shown.get(0);
        assert!(did, "{verb}");
        assert_eq!(shown, after, "{setting} was {before}");
    }
}
