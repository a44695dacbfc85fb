UPDATE {schema}.members m
SET ttl = $2, expires_at = clock_timestamp() + $2 * interval '1 microsecond'
WHERE m.handle = $1 AND m.attention = $3 AND m.holds = $4
  AND NOT m.condemned AND m.expires_at > clock_timestamp()
