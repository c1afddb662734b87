-- Schedules dead letters again, due at once. Outcome 2: no dead letter.
CREATE OR REPLACE FUNCTION public.delayq_redrive(
    p_queue text, p_now bigint, p_ids text[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    call bigint := nextval('public.delayq_calls') << 20;
    dead text[];
    done int[];
BEGIN
    now := t;
    WITH l AS MATERIALIZED ( -- all calls lock in one order
        SELECT m.id FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) u (id) OFFSET 0) u
        JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id WHERE m.state + 0 = 2 ORDER BY m.id FOR UPDATE OF m
    ) SELECT array_agg(l.id) INTO dead FROM l;
    WITH d AS (
        UPDATE public.delayq_messages m SET state = 0, at = t, due = t, seq = call | u.ord, attempts = 0, reason = NULL
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) WITH ORDINALITY u (id, ord) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND (cardinality(dead) = cardinality(p_ids) OR u.id = ANY (dead))
        RETURNING u.ord::int
    ) SELECT array_agg(d.ord) INTO done FROM d;
    IF cardinality(done) > 0 THEN
        soonest := t;
    END IF;
    IF coalesce(cardinality(done), 0) < cardinality(p_ids) THEN
        SELECT string_agg(o || ':2', ',') INTO outcomes FROM generate_series(1, cardinality(p_ids)) o WHERE o <> ALL (coalesce(done, '{}'));
    END IF;
END
$$;
