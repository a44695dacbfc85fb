SELECT s.id, coalesce(e.number, 0), e.incarnation IS ?3 AND EXISTS
    (SELECT 1 FROM {database}.tenure_members m
     WHERE m.ns = ?1 AND m.id = e.holder AND m.incarnation = e.incarnation)
FROM {database}.tenure_store s LEFT JOIN {database}.tenure_elections e ON e.ns = ?1 AND e.name = ?2
