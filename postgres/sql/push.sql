-- Stores messages. A message whose id is taken stays out. Its outcome is 10 plus the state of the first one.
CREATE OR REPLACE FUNCTION public.delayq_push(
    p_queue text, p_now bigint, p_ids text[], p_dues bigint[], p_delays bigint[], p_uniques bigint[], p_headers bytea[], p_bodies bytea[],
    OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t      bigint := public.delayq_clock(p_now);
    call   bigint := nextval('public.delayq_calls') << 20;
    wanted int    := cardinality(p_ids);
    stored int    := 0;
    added  int;
    ended  int;
BEGIN
    now := t;
    FOR try IN 1..5 LOOP
        INSERT INTO public.delayq_messages (queue, id, state, at, seq, due, unique_until, headers, body)
        SELECT p_queue, u.id, 0, d.due, call | u.ord, d.due, t + nullif(u.uniq, 0), nullif(u.headers, ''), u.body
        FROM unnest(p_ids, p_dues, p_delays, p_uniques, p_headers, p_bodies) WITH ORDINALITY u (id, due, delay, uniq, headers, body, ord),
             LATERAL (SELECT CASE WHEN u.due >= 0 THEN u.due ELSE t + u.delay END AS due) d
        ORDER BY u.id COLLATE "C" -- all calls lock in one order
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        stored := stored + added;
        EXIT WHEN stored = wanted;
        -- an id whose window has ended is free
        DELETE FROM public.delayq_messages m WHERE m.queue = p_queue AND m.id = ANY (p_ids) AND m.state + 0 = 3 AND m.at + 0 <= t;
        GET DIAGNOSTICS ended = ROW_COUNT;
        CONTINUE WHEN ended > 0;
        SELECT string_agg(u.ord || ':' || 10 + CASE WHEN m.state = 1 AND m.at <= t THEN 0 ELSE m.state END, ','), stored + count(*)
        INTO outcomes, added
        FROM unnest(p_ids) WITH ORDINALITY u (id, ord)
        JOIN public.delayq_messages m ON m.queue = p_queue AND m.id = u.id
        WHERE m.seq <> call | u.ord;
        EXIT WHEN added = wanted; -- else one was deleted meanwhile
    END LOOP;
    IF stored < wanted AND added < wanted THEN -- neither stored nor a duplicate
        RAISE EXCEPTION 'messages of these ids were stored and deleted again and again' USING ERRCODE = 'serialization_failure';
    END IF;
    IF stored > 0 THEN
        SELECT min(CASE WHEN u.due >= 0 THEN u.due ELSE t + u.delay END) INTO soonest FROM unnest(p_dues, p_delays) u (due, delay);
    END IF;
END
$$;
