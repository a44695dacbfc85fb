-- The fence of a name, as fence() is that of a term.
--
-- What could go wrong, and why it does not:
-- * The owner's ttl runs out while its transaction is open, and another takes the name. The
--   row is locked here, and bind() passes over a row that is locked: the other is answered
--   "busy" until this transaction ends (Q10). No transaction waits for it while it holds a lock.
-- * A take is about to be committed when the fence is asked for. Its row lock is waited for,
--   and the row is looked at again: under READ COMMITTED the new token is found, under the
--   stricter levels it is a serialization failure (40001).
-- * The owner's life is ended and no other has taken the name yet. There is no row of that
--   life among the members: the binding is void, although the name still shows the token.
-- * The name was dropped and taken again by the same life: the token is another.
-- * A take that changes no key column gets past a lock that keeps the key alone. The token is
--   no key column, so the lock is FOR SHARE and not FOR KEY SHARE, as fence() has it: it is in
--   the way of every change of the row, also of one that did not lock it FOR UPDATE before.

-- Proves, inside the caller's own transaction, that the name is bound under this token to a
-- life that was not ended, and keeps it so until the transaction ends. Raises TN001 if the
-- binding is over, with the token that there is instead (0 if none). With p_store, also that
-- it was given out here, else TN002 (L1); with p_life, that it is this very life's.
CREATE FUNCTION {schema}.fence_name(
    p_ns text, p_name text, p_token bigint,
    p_store uuid DEFAULT NULL, p_life uuid DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_newest bigint;
    v_store uuid;
BEGIN
    PERFORM 1 FROM names n, members m, settings s
        WHERE n.ns = p_ns AND n.name = p_name AND n.token = p_token
          AND m.ns = p_ns AND m.id = n.owner AND m.life = n.life
          AND (p_life IS NULL OR n.life = p_life)
          AND s.only_row AND (p_store IS NULL OR s.store = p_store)
        FOR SHARE OF n;
    IF FOUND THEN RETURN; END IF;
    SELECT s.store INTO v_store FROM settings s;
    IF p_store <> v_store THEN
        RAISE EXCEPTION 'the name "%" was bound under token % by the store %, and this is %',
                p_name, p_token, p_store, v_store
            USING ERRCODE = 'TN002',
                  DETAIL = format('the postgres store %s (database "%s", schema "%s")',
                                  v_store, current_database(), {channel}),
                  HINT = 'Roll back, and fence in the database that the name is kept in.';
    END IF;
    SELECT n.token INTO v_newest FROM names n
        LEFT JOIN members m ON m.ns = n.ns AND m.id = n.owner AND m.life = n.life
        WHERE n.ns = p_ns AND n.name = p_name AND (n.life IS NULL OR m.life IS NOT NULL);
    RAISE EXCEPTION 'the binding of the name "%" under token % is over; its token is %',
            p_name, p_token, coalesce(v_newest, 0)
        USING ERRCODE = 'TN001', DETAIL = coalesce(v_newest, 0)::text,
              HINT = 'Roll back and stop working: another may own the name.';
END $$;
