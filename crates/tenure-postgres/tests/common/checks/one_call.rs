//! Elections by one call, of several ids in several namespaces.

use super::Spot;

pub async fn one_call_is_of_one_namespace_one_election_and_one_id(at: Spot) {
    let client = at.client().await;
    let s = &at.schema;
    let call = async |ns: &str, e: &str, id: &str| {
        let sql = format!("SELECT leads, leader FROM {s}.try_lead('{ns}', '{e}', '{id}', '60 s')");
        let row = client.query_one(&sql, &[]).await.unwrap();
        (row.get::<_, bool>(0), row.get::<_, Option<String>>(1).unwrap_or_default())
    };
    let step_down = async |ns: &str, e: &str, id: &str| {
        let sql = format!("SELECT {s}.step_down('{ns}', '{e}', '{id}')");
        client.query_one(&sql, &[]).await.unwrap().get::<_, bool>(0)
    };
    let members = async || {
        let all = "SELECT string_agg(ns || ' ' || id, ', ' ORDER BY ns, id) FROM";
        let row = client.query_one(&format!("{all} {s}.members"), &[]).await.unwrap();
        row.get::<_, Option<String>>(0).unwrap_or_default()
    };
    for (ns, e, id, leader) in [
        ("one", "e", "a", "a"),
        ("one", "e", "b", "a"),
        ("one", "f", "b", "b"),
        ("two", "e", "b", "b"),
        ("two", "f", "a", "a"),
        ("two", "g", "a", "a"),
    ] {
        assert_eq!(call(ns, e, id).await, (id == leader, leader.into()), "{ns} {e} {id}");
        assert_eq!(call(ns, e, id).await, (id == leader, leader.into()), "again");
    }
    assert_eq!(members().await, "one a, one b, two a, two b");
    assert!(!step_down("one", "e", "b").await, "it only stands");
    assert_eq!(members().await, "one a, one b, two a, two b", "b leads f");
    assert!(step_down("one", "f", "b").await);
    assert_eq!(members().await, "one a, two a, two b", "b holds nothing more there");
    assert_eq!(call("two", "e", "a").await, (false, "b".into()));
    assert!(step_down("two", "f", "a").await);
    assert!(step_down("two", "g", "a").await);
    assert_eq!(members().await, "one a, two a, two b", "a stands for e");
    assert_eq!(call("one", "e", "a").await, (true, "a".into()));
    assert!(step_down("two", "e", "b").await);
    assert_eq!(call("two", "e", "a").await, (true, "a".into()));
}

pub async fn an_evicted_caller_does_not_lead(at: Spot) {
    let client = at.client().await;
    let put = |text: &str| text.replace("{s}", &at.schema);
    let sql = async |text: &str| client.batch_execute(&put(text)).await.unwrap();
    let call = async |e: &str, id: &str| {
        let text = put("SELECT leads, term, leader FROM {s}.try_lead('default', $1, $2, '60 s')");
        let row = client.query_one(&text, &[&e, &id]).await.unwrap();
        (row.get::<_, bool>(0), row.get::<_, Option<i64>>(1), row.get::<_, Option<String>>(2))
    };
    assert_eq!(call("e", "a").await, (true, Some(1), Some("a".into())));
    sql("SELECT {s}.evict('default', 'a')").await;
    assert!(!call("e", "a").await.0);
    let step_down = put("SELECT {s}.step_down('default', 'e', 'a')");
    let stepped: bool = client.query_one(&step_down, &[]).await.unwrap().get(0);
    assert!(!stepped, "its life is as good as over");
    sql("SELECT {s}.evict('default', 'a', true)").await;
    assert_eq!(call("e", "b").await, (true, Some(2), Some("b".into())));
    // The leader is told only for as long as its own row says, in its own namespace.
    let life = "'00000000-0000-0000-0000-000000000007'";
    for (ns, id) in [("default", "x"), ("other", "x"), ("default", "z")] {
        sql(&format!("SELECT {{s}}.join('{ns}', '{id}', {life}, 60000000)")).await;
    }
    let bid = "60000000, '{h}', '{1}', '{1}'";
    sql(&format!("SELECT {{s}}.claim('default', 'x', {life}, {bid})")).await;
    sql("SELECT {s}.pause('default', 'h')").await;
    sql("UPDATE {s}.members SET expires_at = now() - interval '1 s' \
         WHERE ns = 'default' AND id = 'x'")
    .await;
    assert_eq!(call("h", "y").await, (false, None, None));
}
