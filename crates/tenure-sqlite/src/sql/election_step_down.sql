UPDATE tenure_elections SET step_reason = ?3, step_by = ?4, step_to = ?5
WHERE ns = ?1 AND name = ?2
