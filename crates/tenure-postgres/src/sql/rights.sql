SELECT has_table_privilege(m.oid, 'SELECT') AND has_table_privilege(m.oid, 'UPDATE') AS may_beat,
       pg_get_userbyid(m.relowner) = current_user AS owns
FROM pg_class m JOIN pg_namespace n ON n.oid = m.relnamespace
WHERE n.nspname = {channel} AND m.relname = 'members'
