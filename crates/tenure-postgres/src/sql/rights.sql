SELECT has_table_privilege(m.oid, 'SELECT') AND has_table_privilege(m.oid, 'UPDATE') AS may_beat,
       EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = n.oid AND p.proname = '_beat'
               AND has_function_privilege(p.oid, 'EXECUTE')) AS may_call_beat,
       pg_get_userbyid(m.relowner) = current_user AS owns
FROM pg_class m JOIN pg_namespace n ON n.oid = m.relnamespace
WHERE n.nspname = {channel} AND m.relname = 'members'
