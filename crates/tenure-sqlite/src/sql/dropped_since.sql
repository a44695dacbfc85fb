SELECT DISTINCT name FROM tenure_dropped WHERE ns = ?1 AND rev > ?2 ORDER BY name
