SELECT 1 FROM tenure_ended WHERE ns = ?1 AND incarnation = ?2
