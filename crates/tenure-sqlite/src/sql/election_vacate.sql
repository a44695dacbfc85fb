UPDATE tenure_elections
SET holder = NULL, incarnation = NULL, step_reason = NULL, step_by = NULL, step_to = NULL,
    heir = :heir, heir_boot = :boot, heir_from = :from, heir_span = :span
WHERE ns = :ns AND name = :name
