-- All but the signs of life, which a heartbeat writes. The lock is that of this handle, if
-- it holds one for the member.
UPDATE tenure_members
SET holds = :holds, attention = :attention, condemned = :condemned, takes_over = :takes_over,
    endpoints = :endpoints, metadata = :metadata, lock = coalesce(:lock, lock)
WHERE ns = :ns AND id = :id AND incarnation = :incarnation
