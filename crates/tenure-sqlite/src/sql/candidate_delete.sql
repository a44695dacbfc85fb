DELETE FROM tenure_candidates WHERE ns = ?1 AND election = ?2 AND id = ?3 AND incarnation = ?4
