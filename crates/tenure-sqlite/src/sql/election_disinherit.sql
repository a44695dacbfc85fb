UPDATE tenure_elections
SET heir = NULL, heir_boot = NULL, heir_from = NULL, heir_span = NULL
WHERE ns = ?1 AND name = ?2 AND heir = ?3
