SELECT s.id, coalesce(n.token, 0), n.incarnation IS ?3 AND EXISTS
    (SELECT 1 FROM {database}.tenure_members m
     WHERE m.ns = ?1 AND m.id = n.id AND m.incarnation = n.incarnation)
FROM {database}.tenure_store s LEFT JOIN {database}.tenure_names n ON n.ns = ?1 AND n.name = ?2
