DELETE FROM tenure_ended WHERE ns = ?1 AND seq <= ?2
