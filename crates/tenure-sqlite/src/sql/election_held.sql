SELECT * FROM tenure_elections WHERE ns = ?1 AND incarnation = ?2 ORDER BY name
