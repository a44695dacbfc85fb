-- Numbers must not go back: only a row may go whose number is 0, or is no higher than the
-- one that was written down for all that a purge removed.
DELETE FROM tenure_elections WHERE ns = ?1 AND name = ?2 AND number <=
    coalesce((SELECT number FROM tenure_forgotten WHERE ns = ?1), 0)
