DELETE FROM tenure_remains WHERE ns = ?1 AND incarnation = ?2
