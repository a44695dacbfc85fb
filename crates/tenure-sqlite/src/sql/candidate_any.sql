SELECT 1 FROM tenure_candidates WHERE ns = ?1 AND election = ?2 LIMIT 1
