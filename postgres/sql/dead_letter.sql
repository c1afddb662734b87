-- Makes dead letters of messages that their leases still hold, in the order of p_order. One that was replaced in
-- flight waits. Outcome 3: lease lost.
CREATE OR REPLACE FUNCTION public.delayq_dead_letter(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], p_reasons bytea[], p_order bigint[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    call bigint := nextval('public.delayq_calls') << 20;
    done int[];
BEGIN
    now := t;
    WITH d AS (
        UPDATE public.delayq_messages m
        SET state = CASE WHEN m.attempts > 0 THEN 2 ELSE 0 END, at = CASE WHEN m.attempts > 0 THEN t ELSE m.due END, token = NULL,
            seq = CASE WHEN m.attempts > 0 THEN call | u.place ELSE m.seq END, reason = CASE WHEN m.attempts > 0 THEN u.reason END
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens, p_reasons, p_order) WITH ORDINALITY u (id, token, reason, place, ord) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t
        RETURNING u.ord::int, CASE WHEN m.state = 0 THEN m.due END AS due
    ) SELECT array_agg(d.ord), min(d.due) INTO done, soonest FROM d;
    IF coalesce(cardinality(done), 0) < cardinality(p_ids) THEN
        SELECT string_agg(o || ':3', ',') INTO outcomes FROM generate_series(1, cardinality(p_ids)) o WHERE o <> ALL (coalesce(done, '{}'));
    END IF;
END
$$;
