SELECT value FROM tenure_meta WHERE name = ?1
