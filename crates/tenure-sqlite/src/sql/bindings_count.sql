UPDATE tenure_meta SET value = max(value + ?1, ?2) WHERE name = 'bindings'
