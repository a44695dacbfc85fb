INSERT OR REPLACE INTO tenure_ended (ns, incarnation, seq) VALUES (?1, ?2, ?3)
