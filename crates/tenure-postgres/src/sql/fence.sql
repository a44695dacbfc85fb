-- The fence, and who may call what.

-- Proves, inside the caller's own transaction, that the term is the newest of
-- its election and has not ended (it was not given back, and its holder was not
-- ended), and keeps a newer one from being given out until the transaction ends
-- (C40). Raises TN001 if it is over.
--
-- With p_store, also that the term was given out here: a caller that remembers which
-- store elected it passes its store_id(), and any other store raises TN002 (L1). With
-- p_life, that it was given to this very life.
CREATE FUNCTION {schema}.fence(
    p_ns text, p_election text, p_number bigint,
    p_store uuid DEFAULT NULL, p_life uuid DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_newest bigint;
    v_store uuid;
BEGIN
    -- The number is a key column, so this lock is in the way of a new term and
    -- of nothing else. Under READ COMMITTED a win in progress is waited for and
    -- the row looked at again; under the stricter levels a row that changed
    -- since the snapshot is a serialization failure (40001).
    PERFORM 1 FROM elections e, members m, settings s
        WHERE e.ns = p_ns AND e.name = p_election AND e.number = p_number
          AND m.ns = p_ns AND m.id = e.holder AND m.life = e.life
          AND (p_life IS NULL OR e.life = p_life)
          AND s.only_row AND (p_store IS NULL OR s.store = p_store)
        FOR KEY SHARE OF e;
    IF FOUND THEN RETURN; END IF;
    SELECT s.store INTO v_store FROM settings s;
    IF p_store <> v_store THEN
        RAISE EXCEPTION 'term % of election "%" was given out by the store %, and this is %',
                p_number, p_election, p_store, v_store
            USING ERRCODE = 'TN002',
                  DETAIL = format('the postgres store %s (database "%s", schema "%s")',
                                  v_store, current_database(), {channel}),
                  HINT = 'Roll back, and fence in the database the election is kept in.';
    END IF;
    SELECT e.number INTO v_newest FROM elections e WHERE e.ns = p_ns AND e.name = p_election;
    RAISE EXCEPTION 'term % of election "%" is over or was given back; the newest is %',
            p_number, p_election, coalesce(v_newest, 0)
        USING ERRCODE = 'TN001', DETAIL = coalesce(v_newest, 0)::text,
              HINT = 'Roll back and stop working: another may lead.';
END $$;

-- Which store this is, for fence().
CREATE FUNCTION {schema}.store_id() RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT store FROM settings
$$;

CREATE FUNCTION {schema}.version() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT version FROM settings
$$;

-- Lets a role take part: it may call the verbs, and touch no table.
CREATE FUNCTION {schema}.grant_to(p_role name) RETURNS void
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_verb text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = p_role) THEN
        RAISE EXCEPTION 'there is no role "%"', p_role USING ERRCODE = '42704';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', {channel}, p_role);
    FOR v_verb IN
        SELECT p.oid::regprocedure::text FROM pg_proc p
        JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = {channel} AND p.prosecdef
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_verb, p_role);
    END LOOP;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}._spread TO PUBLIC;
