SELECT * FROM tenure_members WHERE ns = ?1 AND holds = 0 ORDER BY id
