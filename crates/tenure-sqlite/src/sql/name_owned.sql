SELECT * FROM tenure_names WHERE ns = ?1 AND id = ?2 AND incarnation = ?3
ORDER BY name
