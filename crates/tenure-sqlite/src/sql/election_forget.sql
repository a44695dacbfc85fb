-- An election nobody ever won, stands for or has paused: only such a row may
-- go, since its number is still 0.
DELETE FROM tenure_elections AS e
WHERE e.ns = ?1 AND e.name = ?2 AND e.number = 0 AND e.pause_reason IS NULL
  AND NOT EXISTS
      (SELECT 1 FROM tenure_candidates AS c WHERE c.ns = e.ns AND c.election = e.name)
