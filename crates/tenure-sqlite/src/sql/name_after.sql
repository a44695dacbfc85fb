SELECT * FROM tenure_names WHERE ns = ?1 AND name > ?2 ORDER BY name LIMIT ?3
