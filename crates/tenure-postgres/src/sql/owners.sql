WITH RECURSIVE us AS (
    -- A role that was only put on is put off again by whatever is called.
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname IN (session_user, current_user)
), mine AS (
    -- What they were made members of; not what a superuser may be as well.
    SELECT u.oid FROM us u
    UNION
    SELECT m.roleid FROM mine JOIN pg_catalog.pg_auth_members m ON m.member = mine.oid
), power AS (
    SELECT bool_or(r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication
               OR r.rolbypassrls OR r.rolname LIKE 'pg\_%' AND r.rolname NOT IN ('pg_monitor',
               'pg_read_all_settings', 'pg_read_all_stats', 'pg_stat_scan_tables',
               'pg_database_owner')) AS over_cluster,
           pg_catalog.has_database_privilege(session_user, pg_catalog.current_database(),
               'CREATE') AS over_database
    FROM mine JOIN pg_catalog.pg_roles r ON r.oid = mine.oid
), trusted AS (
    SELECT r.oid FROM pg_catalog.pg_roles r, power p
    WHERE CASE WHEN $2 IS NOT NULL THEN r.rolname = $2 OR r.rolsuper
          ELSE r.rolsuper OR r.oid IN (SELECT m.oid FROM mine m)
            OR NOT p.over_cluster AND (NOT p.over_database OR r.oid = (
                SELECT d.datdba FROM pg_catalog.pg_database d
                WHERE d.datname = pg_catalog.current_database())) END
), schema AS (
    SELECT n.oid, n.nspowner, n.nspacl, n.nspname FROM pg_catalog.pg_namespace n
    WHERE n.nspname = $1
), things AS (
    SELECT 0 AS ord, 'the schema ' || pg_catalog.quote_ident(s.nspname) AS what,
           s.nspowner AS role FROM schema s
    UNION ALL
    SELECT 1, 'the function ' || pg_catalog.quote_ident(f.proname), f.proowner
        FROM schema s JOIN pg_catalog.pg_proc f ON f.pronamespace = s.oid
    UNION ALL
    SELECT 2, 'the relation ' || pg_catalog.quote_ident(c.relname), c.relowner
        FROM schema s JOIN pg_catalog.pg_class c ON c.relnamespace = s.oid
    UNION ALL
    SELECT 3, 'the type ' || pg_catalog.quote_ident(t.typname), t.typowner
        FROM schema s JOIN pg_catalog.pg_type t ON t.typnamespace = s.oid
    UNION ALL
    SELECT 4, 'the operator ' || o.oprname, o.oprowner
        FROM schema s JOIN pg_catalog.pg_operator o ON o.oprnamespace = s.oid
    UNION ALL
    SELECT 5, 'the right to create', a.grantee
        FROM schema s, pg_catalog.aclexplode(s.nspacl) a WHERE a.privilege_type = 'CREATE'
)
SELECT t.what, CASE WHEN t.role = 0 THEN 'everybody'
                    ELSE pg_catalog.pg_get_userbyid(t.role)::text END AS whose,
       session_user::text AS role, pg_catalog.pg_get_userbyid(s.nspowner)::text AS owner
FROM things t, schema s, power p
WHERE t.role NOT IN (SELECT r.oid FROM trusted r)
  AND ($2 IS NOT NULL OR p.over_cluster OR p.over_database)
ORDER BY t.ord, t.what LIMIT 1
