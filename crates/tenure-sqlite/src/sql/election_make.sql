INSERT OR IGNORE INTO tenure_elections (ns, name) VALUES (?1, ?2)
