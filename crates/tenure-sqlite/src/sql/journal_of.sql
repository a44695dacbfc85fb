SELECT * FROM tenure_journal WHERE ns = ?1 AND election = ?2 ORDER BY seq DESC LIMIT ?3
