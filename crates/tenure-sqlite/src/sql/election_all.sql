SELECT * FROM tenure_elections WHERE ns = ?1 ORDER BY name
