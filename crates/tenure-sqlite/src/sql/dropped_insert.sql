INSERT INTO tenure_dropped (ns, rev, name) VALUES (?1, ?2, ?3)
