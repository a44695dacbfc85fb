SELECT * FROM tenure_journal WHERE ns = ?1 ORDER BY seq DESC LIMIT ?2
