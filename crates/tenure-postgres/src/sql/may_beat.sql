SELECT has_table_privilege(m.oid, 'SELECT') AND has_table_privilege(m.oid, 'UPDATE')
       AND has_table_privilege(n.oid, 'SELECT') AS may
FROM (SELECT '{schema}.members'::regclass::oid) m, (SELECT '{schema}.namespaces'::regclass::oid) n
