INSERT INTO tenure_members
    (ns, id, incarnation, boot, lock, beat, beat_at, ttl, holds, attention, condemned, takes_over,
     joined_at, endpoints, metadata)
VALUES
    (:ns, :id, :incarnation, :boot, :lock, 1, :now, :ttl, :holds, :attention, :condemned,
     :takes_over, :joined_at, :endpoints, :metadata)
