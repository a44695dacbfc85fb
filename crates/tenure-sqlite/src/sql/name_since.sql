SELECT * FROM tenure_names WHERE ns = ?1 AND rev > ?2 ORDER BY rev
