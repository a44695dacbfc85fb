SELECT s.id, coalesce(e.number, 0), e.incarnation IS ?3
FROM {database}.tenure_store s LEFT JOIN {database}.tenure_elections e ON e.ns = ?1 AND e.name = ?2
