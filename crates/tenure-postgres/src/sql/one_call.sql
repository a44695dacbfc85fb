-- Elections by one call, for jobs that keep no state between two calls but an id.
--
-- What a member has to remember is kept by its id: the life that a call began is found by
-- the next one. Such a life begins with a digest of the id, the rest is drawn. So an id
-- that another client joined under, with a life of its own, is never taken for the
-- caller's; and a life that is over is followed by a new one, with a new term (M1).

-- The first half of the lives of this id.
CREATE FUNCTION {schema}._one_call_half(p_id text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT left(md5('tenure one call ' || p_id), 16) $$;

-- The life that an earlier call began and that is not over; NULL if there is none.
CREATE FUNCTION {schema}._one_call_life(p_ns text, p_id text) RETURNS uuid
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_life uuid;
BEGIN
    SELECT m.life INTO v_life FROM members m
        WHERE m.ns = p_ns AND m.id = p_id AND NOT m.condemned
          AND m.expires_at > clock_timestamp()
          AND left(replace(m.life::text, '-', ''), 16) = _one_call_half(p_id);
    RETURN v_life;
END $$;

-- The term that this life holds; NULL if it holds none.
CREATE FUNCTION {schema}._one_call_term(p_ns text, p_election text, p_life uuid) RETURNS bigint
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
DECLARE
    v_number bigint;
BEGIN
    SELECT e.number INTO v_number FROM elections e
        WHERE e.ns = p_ns AND e.name = p_election AND (e.life = p_life) IS TRUE;
    RETURN v_number;
END $$;

-- Leads if no other member does, or goes on leading: to be called again well before the ttl has
-- run out, a quarter of it apart. What counts as the caller is the id: each process, and
-- each start of it, has one of its own.
--
-- A call that goes on leading locks its member's row alone. Any other takes the namespace
-- first, as every verb does that needs both: in the other order two calls under one id
-- could wait for each other.
CREATE FUNCTION {schema}.try_lead(
    p_ns text, p_election text, p_id text, p_ttl interval DEFAULT '10 seconds',
    OUT leads boolean, OUT term bigint, OUT remaining interval, OUT leader text,
    OUT asked boolean)
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_ttl bigint := floor(date_part('epoch', p_ttl) * 1000000)::bigint;
    v_outcome text;
    v_ready boolean := _check_ttl(v_ttl) AND _check_name('a namespace', p_ns)
        AND _check_name('an election''s name', p_election) AND _check_name('a member''s id', p_id);
    v_life uuid := _one_call_life(p_ns, p_id);
BEGIN
    IF _one_call_term(p_ns, p_election, v_life) IS NULL THEN
        v_ready := _enter(p_ns, 0);
        v_life := _one_call_life(p_ns, p_id);
    END IF;
    IF v_life IS NOT NULL THEN
        SELECT b.outcome INTO v_outcome FROM heartbeat(p_ns, p_id, v_life, v_ttl) AS b;
    ELSE
        v_life := (_one_call_half(p_id) || left(md5(gen_random_uuid()::text), 16))::uuid;
        SELECT j.outcome INTO v_outcome FROM join(p_ns, p_id, v_life, v_ttl) AS j;
    END IF;
    -- A life that ended just now, or an id that is another client's, stands for nothing.
    IF v_outcome IN ('alive', 'in') AND _one_call_term(p_ns, p_election, v_life) IS NULL THEN
        PERFORM claim(p_ns, p_id, v_life, v_ttl, ARRAY[p_election], ARRAY[100],
            ARRAY[floor(date_part('epoch', clock_timestamp()) * 1000000)::bigint]);
    END IF;
    SELECT e.life = v_life, e.number, m.expires_at - clock_timestamp(), e.holder,
           e.asked AND e.life = v_life
        INTO leads, term, remaining, leader, asked
        FROM elections e JOIN members m ON m.ns = e.ns AND m.id = e.holder AND m.life = e.life
        WHERE e.ns = p_ns AND e.name = p_election
          AND least(m.expires_at, e.heir_until) > clock_timestamp();
    leads := coalesce(leads, false);
    asked := coalesce(asked, false);
END $$;

-- Gives up what `try_lead` won under this id, after its work has stopped; also a candidacy.
-- Answers whether a term was given up. An id that holds nothing more leaves.
CREATE FUNCTION {schema}.step_down(p_ns text, p_election text, p_id text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER {planned} AS $$
DECLARE
    v_life uuid := _one_call_life(p_ns, p_id);
    v_ready boolean;
    v_number bigint;
    v_cause text;
BEGIN
    IF v_life IS NULL THEN RETURN false; END IF;
    v_ready := _enter(p_ns, 0);
    v_number := _one_call_term(p_ns, p_election, v_life);
    SELECT CASE WHEN e.asked THEN 'stepped down' ELSE 'resigned' END INTO v_cause
        FROM elections e WHERE e.ns = p_ns AND e.name = p_election;
    PERFORM release(p_ns, p_id, v_life, ARRAY[p_election], ARRAY[v_number], ARRAY[v_cause]);
    IF NOT EXISTS (SELECT FROM elections e WHERE e.life = v_life AND e.ns = p_ns)
       AND NOT EXISTS (SELECT FROM candidates c WHERE c.ns = p_ns AND c.member = p_id) THEN
        PERFORM leave(p_ns, p_id, v_life);
    END IF;
    RETURN v_number IS NOT NULL;
END $$;
