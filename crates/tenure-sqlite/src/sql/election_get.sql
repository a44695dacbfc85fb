SELECT * FROM tenure_elections WHERE ns = ?1 AND name = ?2
