DELETE FROM tenure_journal WHERE ns = ?1 AND seq <= ?2
