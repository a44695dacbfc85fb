INSERT INTO tenure_meta (name, value)
VALUES ('era', ?1), ('floor', ?2), ('raised_at', ?3), ('raised_for', ?4)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
