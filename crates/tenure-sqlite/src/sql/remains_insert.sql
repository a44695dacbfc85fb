INSERT INTO tenure_remains (ns, incarnation, id) VALUES (?1, ?3, ?2)
