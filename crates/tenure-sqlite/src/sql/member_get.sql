SELECT * FROM tenure_members WHERE ns = ?1 AND id = ?2
