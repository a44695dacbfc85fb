-- The number rises in the same statement that names the holder; the step-down
-- and the reservation end with the term they belonged to.
UPDATE tenure_elections
SET number = number + 1, holder = :id, incarnation = :incarnation, elected_at = :wall,
    winner = :incarnation, nonce = :nonce,
    step_reason = NULL, step_by = NULL, step_to = NULL,
    heir = NULL, heir_boot = NULL, heir_from = NULL, heir_span = NULL
WHERE ns = :ns AND name = :name
RETURNING number
