DELETE FROM tenure_dropped WHERE ns = ?1 AND rev IN (
    SELECT rev FROM tenure_dropped WHERE ns = ?1 AND rev < ?2 ORDER BY rev LIMIT ?3
)
