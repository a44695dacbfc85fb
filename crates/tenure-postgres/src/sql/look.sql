SELECT h.number, h.elected_at, h.ttl_us, h.left_us, h.unconfirmed,
       CASE WHEN h.number IS NULL THEN {schema}.read(
           $1, 'named', ARRAY[$2], NULL, $3, $4, false, false, 0)::text END AS seen
FROM (VALUES (true)) AS one LEFT JOIN (
    SELECT e.number, e.elected_at, m.ttl AS ttl_us,
           floor(date_part('epoch', least(m.expires_at, e.heir_until) - clock_timestamp())
               * 1000000)::bigint AS left_us,
           e.heir_until IS NOT NULL AS unconfirmed
    FROM {schema}.elections e, {schema}.members m
    WHERE e.ns = $1 AND e.name = $2
      AND (e.life = $4) IS TRUE AND e.holder = $3 AND NOT e.paused AND NOT e.asked
      AND m.ns = $1 AND m.id = $3 AND m.life = $4
      AND least(m.expires_at, e.heir_until) > clock_timestamp()
) AS h ON true
