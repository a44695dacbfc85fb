UPDATE {schema}.members m
SET ttl = $4, expires_at = clock_timestamp() + $4 * interval '1 microsecond'
WHERE m.ns = $1 AND m.id = $2 AND m.life = $3 AND m.attention = $5 AND m.holds = $6
  AND NOT m.condemned AND m.expires_at > clock_timestamp()
