-- The whole heartbeat, for whatever the member holds: it renews a row of this
-- boot whose ttl has not run out, and no other (rule M1).
UPDATE tenure_members
SET beat = beat + 1, beat_at = :now, ttl = :ttl
WHERE ns = :ns AND id = :id AND incarnation = :incarnation AND boot = :boot
  AND condemned = 0 AND beat_at <= :now AND :now - beat_at < ttl
RETURNING attention, holds, (SELECT seq FROM tenure_namespaces WHERE ns = :ns)
