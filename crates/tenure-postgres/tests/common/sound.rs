//! What must hold of the tables, whatever was asked.

use tokio_postgres::Client;

/// Each finds what breaks it.
const INVARIANTS: [(&str, &str); 12] = [
    (
        "every name has a member for an owner or none, or is to be cleared away",
        "SELECT n.name FROM {s}.names n WHERE n.life IS NOT NULL AND NOT EXISTS (\
         SELECT FROM {s}.members m WHERE m.ns = n.ns AND m.id = n.owner AND m.life = n.life) \
         AND NOT EXISTS (SELECT FROM {s}.remains r WHERE r.ns = n.ns AND r.life = n.life)",
    ),
    (
        "no name is ahead of where its namespace's names stand",
        "SELECT n.name FROM {s}.names n LEFT JOIN {s}.names_at a ON a.ns = n.ns \
         WHERE (n.token <= n.rev AND n.rev <= a.rev) IS NOT TRUE",
    ),
    (
        "the journal has no gaps",
        "SELECT n.ns FROM {s}.namespaces n \
         LEFT JOIN {s}.journal j ON j.ns = n.ns AND j.seq > n.trimmed \
         GROUP BY n.ns, n.seq, n.trimmed \
         HAVING count(j.seq) <> n.seq - n.trimmed OR max(j.seq) <> n.seq \
             OR min(j.seq) <> n.trimmed + 1",
    ),
    (
        "every entry belongs to a namespace",
        "SELECT j.ns FROM {s}.journal j WHERE NOT EXISTS (\
         SELECT FROM {s}.namespaces n WHERE n.ns = j.ns)",
    ),
    (
        "each member holds as many terms as it says",
        "SELECT m.id FROM {s}.members m WHERE m.holds <> (SELECT count(*) FROM {s}.elections e \
         WHERE e.ns = m.ns AND e.holder = m.id AND e.life = m.life)",
    ),
    (
        "every term is held by a member, or its life is over",
        "SELECT e.name FROM {s}.elections e WHERE e.life IS NOT NULL AND NOT EXISTS (\
         SELECT FROM {s}.members m WHERE m.ns = e.ns AND m.id = e.holder AND m.life = e.life) \
         AND NOT EXISTS (SELECT FROM {s}.told t WHERE t.ns = e.ns AND t.over = e.life)",
    ),
    (
        "a holder is a member and a life",
        "SELECT e.name FROM {s}.elections e WHERE (e.holder IS NULL) <> (e.life IS NULL)",
    ),
    (
        "what has no holder has nothing of a term",
        "SELECT e.name FROM {s}.elections e WHERE e.life IS NULL \
         AND (e.elected_at, e.priority, e.asked_reason, e.asked_by, e.asked_to) \
             IS DISTINCT FROM (NULL, NULL, NULL, NULL, NULL) OR e.life IS NULL AND e.asked",
    ),
    (
        "a vacancy is kept for an heir and until some time",
        "SELECT e.name FROM {s}.elections e \
         WHERE e.heir IS NOT NULL AND (e.heir_until IS NULL OR e.life IS NOT NULL) \
            OR e.heir IS NULL AND e.life IS NULL AND e.heir_until IS NOT NULL \
            OR e.number = 0 AND (e.won_by, e.won_nonce) IS DISTINCT FROM (NULL, NULL)",
    ),
    (
        "a holder stands once",
        "SELECT e.name FROM {s}.elections e LEFT JOIN {s}.candidates c ON c.ns = e.ns \
         AND c.election = e.name AND c.member = e.holder AND c.life = e.life \
         WHERE e.priority IS NOT NULL \
         AND (e.holder IS NULL OR c.member IS NOT NULL)",
    ),
    (
        "every candidate is a member, or is to be cleared away",
        "SELECT c.member FROM {s}.candidates c WHERE NOT EXISTS (\
         SELECT FROM {s}.members m WHERE m.ns = c.ns AND m.id = c.member AND m.life = c.life) \
         AND NOT EXISTS (SELECT FROM {s}.remains r WHERE r.ns = c.ns AND r.life = c.life)",
    ),
    (
        "every member has a profile, and every profile a member",
        "SELECT coalesce(m.id, p.id) FROM {s}.members m FULL JOIN {s}.profiles p \
         ON p.ns = m.ns AND p.id = m.id WHERE m.id IS NULL OR p.id IS NULL",
    ),
];

/// What does not hold, and of what.
pub async fn unsound(client: &Client, schema: &str) -> Vec<String> {
    let found = |(number, (_, sql)): (usize, &(&str, &str))| {
        format!("SELECT {number}, t.* FROM ({}) AS t(who)", sql.replace("{s}", schema))
    };
    let all: Vec<_> = INVARIANTS.iter().enumerate().map(found).collect();
    let rows = client.query(&all.join(" UNION ALL "), &[]).await.unwrap();
    let told = |row: &tokio_postgres::Row| {
        let number = usize::try_from(row.get::<_, i32>(0)).unwrap();
        format!("{}: {}", INVARIANTS[number].0, row.get::<_, String>(1))
    };
    rows.iter().map(told).collect()
}
