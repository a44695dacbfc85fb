UPDATE {schema}.members m
SET ttl = $4, expires_at = clock_timestamp() + $4 * interval '1 microsecond'
WHERE m.ns = $1 AND m.id = $2 AND m.life = $3
  AND NOT m.condemned AND m.expires_at > clock_timestamp()
RETURNING m.attention, m.holds
