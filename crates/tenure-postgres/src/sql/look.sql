SELECT h.number, h.elected_ms, h.ttl_us, h.left_us, h.unconfirmed,
       CASE WHEN h.number IS NULL THEN
           {schema}.read($1, 'named', $2, NULL, $3, $4::uuid, false, false, 0)::text END AS seen
FROM (VALUES (true)) AS one LEFT JOIN (
    SELECT e.number, {schema}._ms(e.elected_at) AS elected_ms, m.ttl AS ttl_us,
           {schema}._us(least(m.expires_at, e.heir_until) - clock_timestamp()) AS left_us,
           e.heir_until IS NOT NULL AS unconfirmed
    FROM {schema}.elections e, {schema}.members m
    WHERE cardinality($2) = 1 AND e.ns = $1 AND e.name = $2[1]
      AND (e.life = $4::uuid) IS TRUE AND e.holder = $3 AND NOT e.paused AND NOT e.asked
      AND m.ns = $1 AND m.id = $3 AND m.life = $4::uuid
      AND least(m.expires_at, e.heir_until) > clock_timestamp()
) AS h ON true
