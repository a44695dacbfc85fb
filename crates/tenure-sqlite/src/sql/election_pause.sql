UPDATE tenure_elections SET pause_reason = ?3, pause_by = ?4 WHERE ns = ?1 AND name = ?2
