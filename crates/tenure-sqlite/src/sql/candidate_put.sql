INSERT INTO tenure_candidates (ns, election, id, incarnation, priority, stood, boot, since)
VALUES (:ns, :election, :id, :incarnation, :priority, :stood, :boot, :since)
ON CONFLICT (ns, election, id) DO UPDATE SET
    incarnation = excluded.incarnation, priority = excluded.priority,
    stood = excluded.stood, boot = excluded.boot, since = excluded.since
