-- The number rises in the same statement that names the holder; the step-down
-- and the reservation end with the term they belonged to.
UPDATE tenure_elections
SET number = max(number + 1 + ((m.era - tenure_elections.era) << 16), m.floor), era = m.era,
    holder = :id, incarnation = :incarnation, elected_at = :wall,
    winner = :incarnation, nonce = :nonce,
    step_reason = NULL, step_by = NULL, step_to = NULL,
    heir = NULL, heir_boot = NULL, heir_from = NULL, heir_span = NULL
FROM (SELECT (SELECT value FROM tenure_meta WHERE name = 'era') AS era,
             (SELECT value FROM tenure_meta WHERE name = 'floor') AS floor) AS m
WHERE ns = :ns AND name = :name
RETURNING number
