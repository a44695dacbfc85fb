SELECT * FROM tenure_journal WHERE ns = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3
