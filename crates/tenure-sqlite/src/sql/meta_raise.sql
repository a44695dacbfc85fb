UPDATE tenure_meta SET value = CASE name WHEN 'era' THEN ?1 ELSE ?2 END
WHERE name IN ('era', 'floor')
