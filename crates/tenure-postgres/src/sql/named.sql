-- Reading names. All of an answer is of one moment: see read.sql.

-- The names asked for, whether or not their owners live.
CREATE FUNCTION {schema}._names_asked(
    p_ns text, p_which text, p_names text[], p_prefix text, p_owner text, p_life uuid,
    p_since bigint
) RETURNS SETOF {schema}.names LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_upto text;
BEGIN
    IF p_which = 'named' THEN
        RETURN QUERY SELECT n.* FROM names n WHERE n.ns = p_ns AND n.name = ANY (p_names);
    ELSIF p_which = 'prefix' THEN
        -- No name that begins so is above this one: none has more than 50 such characters.
        -- An encoding that has no such character is read to its end.
        IF getdatabaseencoding() = 'UTF8' THEN
            v_upto := p_prefix || repeat(chr(1114111), 50);
        ELSE
            SELECT max(n.name) INTO v_upto FROM names n WHERE n.ns = p_ns;
        END IF;
        RETURN QUERY SELECT n.* FROM names n WHERE n.ns = p_ns
            AND n.name >= p_prefix AND n.name <= v_upto AND starts_with(n.name, p_prefix);
    ELSIF p_which = 'owned' THEN
        RETURN QUERY SELECT n.* FROM names n
            WHERE n.life = p_life AND n.ns = p_ns AND n.owner = p_owner;
    ELSIF p_which = 'since' THEN
        RETURN QUERY SELECT n.* FROM names n WHERE n.ns = p_ns AND n.rev > p_since AND n.rev > 0;
    ELSE
        PERFORM _refuse('names are asked for as named, prefix, owned or since');
    END IF;
END $$;

-- p_which: 'named' (p_names), 'prefix' (p_prefix; all, if it is empty), 'owned' (by p_life
-- of p_owner) or 'since' (what changed after revision p_since).
--
-- A row "at" says which revision this is. A row "bound" for each name whose owner lives or
-- that has none. Besides, for 'since': a row "gone" for each name that was dropped and
-- is not bound now, and a row "owner" for each live life that owns names; a name of any other
-- life is gone. If "whole", these are all names: it can no longer be told what changed.
CREATE FUNCTION {schema}.names(
    p_ns text, p_which text DEFAULT 'prefix', p_names text[] DEFAULT '{}',
    p_prefix text DEFAULT '', p_owner text DEFAULT NULL, p_life uuid DEFAULT NULL,
    p_since bigint DEFAULT 0
) RETURNS TABLE (kind text, name text, token bigint, rev bigint, owner text, life uuid,
    endpoint text, idx jsonb, data bytea, left_us bigint, bound_ms bigint, whole boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER {planned} AS $$
#variable_conflict use_column
DECLARE
    v_at timestamptz := clock_timestamp();
    v_rev bigint;
    v_whole boolean := false;
    v_since bigint := p_since;
BEGIN
    SELECT s.rev, CASE WHEN p_which = 'since' THEN p_since < s.kept_from OR p_since > s.rev
                  ELSE false END
        INTO v_rev, v_whole FROM _names_stand(p_ns) s;
    IF v_whole THEN v_since := 0; END IF;
    RETURN QUERY SELECT 'at', NULL, NULL::bigint, v_rev, NULL, NULL::uuid, NULL, NULL::jsonb,
        NULL::bytea, NULL::bigint, NULL::bigint, v_whole;
    RETURN QUERY SELECT 'bound', n.name::text, n.token, n.rev, n.owner::text, n.life, n.endpoint,
            n.idx, n.data, CASE WHEN n.life IS NULL THEN 0 ELSE _us(m.expires_at - v_at) END,
            _ms(n.bound_at), NULL::boolean
        FROM _names_asked(p_ns, p_which, p_names, p_prefix, p_owner, p_life, v_since) n
        LEFT JOIN members m ON m.ns = p_ns AND m.id = n.owner AND m.life = n.life
        WHERE n.life IS NULL OR m.expires_at > v_at
        ORDER BY n.name;
    IF p_which <> 'since' THEN RETURN; END IF;
    IF NOT v_whole THEN
        -- Also a name that changed hands, and whose new owner does not live.
        RETURN QUERY SELECT DISTINCT 'gone', g.name::text, NULL::bigint, NULL::bigint, NULL,
                NULL::uuid, NULL, NULL::jsonb, NULL::bytea, NULL::bigint, NULL::bigint,
                NULL::boolean
            FROM (SELECT o.name FROM names_gone o WHERE o.ns = p_ns AND o.rev > v_since
                  UNION SELECT o.name FROM names o
                  WHERE o.ns = p_ns AND o.rev > v_since AND o.rev > 0) g
            LEFT JOIN names n ON n.ns = p_ns AND n.name = g.name
            LEFT JOIN members m ON m.ns = p_ns AND m.id = n.owner AND m.life = n.life
            WHERE n.name IS NULL OR n.life IS NOT NULL AND (m.expires_at > v_at) IS NOT TRUE;
    END IF;
    RETURN QUERY SELECT 'owner', NULL, NULL::bigint, NULL::bigint, m.id::text, m.life, NULL,
            NULL::jsonb, NULL::bytea, _us(m.expires_at - v_at), NULL::bigint, NULL::boolean
        FROM members m
        WHERE m.ns = p_ns AND m.expires_at > v_at AND EXISTS (
            SELECT FROM names n WHERE n.life = m.life AND n.ns = p_ns AND n.owner = m.id);
END $$;
