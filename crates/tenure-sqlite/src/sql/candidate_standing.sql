-- The candidates of an election with the member each belongs to.
SELECT c.priority, c.stood, c.boot AS stood_boot, c.since, m.*
FROM tenure_candidates AS c
JOIN tenure_members AS m ON m.ns = c.ns AND m.id = c.id AND m.incarnation = c.incarnation
WHERE c.ns = ?1 AND c.election = ?2
