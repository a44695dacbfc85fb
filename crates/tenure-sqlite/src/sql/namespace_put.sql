INSERT INTO tenure_namespaces (ns, seq, trimmed) VALUES (?1, ?2, ?3)
ON CONFLICT (ns) DO UPDATE SET seq = excluded.seq, trimmed = excluded.trimmed
