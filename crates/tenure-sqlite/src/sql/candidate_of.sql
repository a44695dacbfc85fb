SELECT election FROM tenure_candidates WHERE ns = ?1 AND id = ?2 AND incarnation = ?3 LIMIT ?4
