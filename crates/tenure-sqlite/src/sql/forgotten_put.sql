INSERT INTO tenure_forgotten (ns, number, era) VALUES (?1, ?2, ?3)
ON CONFLICT (ns) DO UPDATE SET number = excluded.number, era = excluded.era
