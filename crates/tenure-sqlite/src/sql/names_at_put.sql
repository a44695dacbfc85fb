INSERT INTO tenure_revisions (ns, rev, era, kept_from) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (ns) DO UPDATE
SET rev = excluded.rev, era = excluded.era, kept_from = excluded.kept_from
