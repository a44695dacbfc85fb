INSERT INTO tenure_members
    (ns, id, incarnation, boot, lock, beat, beat_at, ttl, holds, attention, condemned, joined_at,
     endpoints, metadata)
VALUES
    (:ns, :id, :incarnation, :boot, :lock, 1, :now, :ttl, 0, 0, 0, :wall, :endpoints, :metadata)
