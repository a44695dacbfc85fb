SELECT has_table_privilege(m.oid, 'SELECT') AND has_table_privilege(m.oid, 'UPDATE') AS may
FROM (SELECT '{schema}.members'::regclass::oid) m
