-- Makes dead letters of messages that their leases still hold, in the order of p_order. One that was replaced in
-- flight waits. Outcome 3: lease lost.
CREATE OR REPLACE FUNCTION public.delayq_dead_letter(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], p_reasons bytea[], p_order bigint[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    call bigint := nextval('public.delayq_calls') << 20;
    done int[];
    back int[];
BEGIN
    now := t;
    WITH d AS (
        UPDATE public.delayq_messages m SET state = 2, at = t, seq = call | u.place, token = NULL, reason = u.reason
        FROM unnest(p_ids, p_tokens, p_reasons, p_order) WITH ORDINALITY u (id, token, reason, place, ord)
        WHERE m.queue = p_queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND m.attempts > 0
        RETURNING u.ord::int
    ) SELECT array_agg(d.ord) INTO done FROM d;
    IF coalesce(cardinality(done), 0) < cardinality(p_ids) THEN
        WITH d AS (
            UPDATE public.delayq_messages m SET state = 0, at = m.due, token = NULL
            FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord)
            WHERE m.queue = p_queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND m.attempts = 0
            RETURNING u.ord::int, m.due
        ) SELECT array_agg(d.ord), min(d.due) INTO back, soonest FROM d;
        SELECT string_agg(o || ':3', ',') INTO outcomes FROM generate_series(1, cardinality(p_ids)) o WHERE o <> ALL (coalesce(done, '{}') || coalesce(back, '{}'));
    END IF;
END
$$;
