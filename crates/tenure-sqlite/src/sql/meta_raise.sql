UPDATE tenure_meta SET value = CASE name WHEN 'era' THEN value + 1 ELSE max(value, ?1) END
WHERE name IN ('era', 'floor')
