SELECT id, incarnation FROM tenure_remains WHERE ns = ?1 LIMIT 1
