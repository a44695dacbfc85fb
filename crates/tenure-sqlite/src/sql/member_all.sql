SELECT * FROM tenure_members WHERE ns = ?1 ORDER BY id
