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
    known  int    := 0;
BEGIN
    now := t;
    FOR try IN 1..2 LOOP
        outcomes := NULL; -- a variable keeps what the first try found, though its changes are rolled back
        known := 0;
        BEGIN -- all calls lock in the order of ids: so what the first try has stored goes before the second
            IF try = 1 THEN
                INSERT INTO public.delayq_messages (queue, id, state, at, seq, due, unique_until, headers, body)
                SELECT p_queue, u.id, 0, d.due, call | u.ord, d.due, t + nullif(u.uniq, 0), nullif(u.headers, ''), u.body
                FROM unnest(p_ids, p_dues, p_delays, p_uniques, p_headers, p_bodies) WITH ORDINALITY u (id, due, delay, uniq, headers, body, ord),
                     LATERAL (SELECT CASE WHEN u.due >= 0 THEN u.due ELSE t + u.delay END AS due) d
                ORDER BY u.id COLLATE "C"
                ON CONFLICT DO NOTHING; -- which waits for no lock of one that is there
            ELSE -- an id whose window has ended is free, and so is one that was deleted meanwhile
                INSERT INTO public.delayq_messages AS m (queue, id, state, at, seq, due, unique_until, headers, body)
                SELECT p_queue, u.id, 0, d.due, call | u.ord, d.due, t + nullif(u.uniq, 0), nullif(u.headers, ''), u.body
                FROM unnest(p_ids, p_dues, p_delays, p_uniques, p_headers, p_bodies) WITH ORDINALITY u (id, due, delay, uniq, headers, body, ord),
                     LATERAL (SELECT CASE WHEN u.due >= 0 THEN u.due ELSE t + u.delay END AS due) d
                ORDER BY u.id COLLATE "C"
                ON CONFLICT (queue, id) DO UPDATE
                SET state = 0, at = excluded.at, seq = excluded.seq, due = excluded.due, attempts = 0, token = NULL,
                    unique_until = excluded.unique_until, first_push = NULL, headers = excluded.headers, body = excluded.body, reason = NULL
                WHERE m.state = 3 AND m.at <= t;
            END IF;
            GET DIAGNOSTICS stored = ROW_COUNT;
            EXIT WHEN stored = wanted;
            SELECT string_agg(u.ord || ':' || 10 + CASE WHEN m.state = 1 AND m.at <= t THEN 0 ELSE m.state END, ','), count(*)
            INTO outcomes, known
            FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) WITH ORDINALITY u (id, ord) OFFSET 0) u
            JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id
            WHERE m.seq <> call | u.ord AND (m.state + 0 < 3 OR m.at + 0 > t);
            EXIT WHEN stored + known = wanted;
            RAISE EXCEPTION 'an id was free after all' USING ERRCODE = CASE WHEN try = 1 THEN 'DQ001' ELSE 'serialization_failure' END;
        EXCEPTION WHEN SQLSTATE 'DQ001' THEN -- goes on with the second try
        END;
    END LOOP;
    IF stored > 0 THEN
        SELECT min(CASE WHEN u.due >= 0 THEN u.due ELSE t + u.delay END) INTO soonest FROM unnest(p_dues, p_delays) u (due, delay);
    END IF;
END
$$;
