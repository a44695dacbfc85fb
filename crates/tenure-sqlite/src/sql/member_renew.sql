UPDATE tenure_members
SET beat = beat + 1, beat_at = :now, ttl = :ttl, boot = :boot
WHERE ns = :ns AND id = :id AND incarnation = :incarnation
