SELECT incarnation, count(*) FROM tenure_names
WHERE ns = ?1 AND incarnation IS NOT NULL
GROUP BY id, incarnation
