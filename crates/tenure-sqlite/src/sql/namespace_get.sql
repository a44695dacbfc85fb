-- The version of the tables beside it: see `place`.
SELECT (SELECT value FROM tenure_meta WHERE name = 'schema'), seq, trimmed
FROM (SELECT 1) LEFT JOIN tenure_namespaces ON ns = ?1
