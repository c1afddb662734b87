-- Gives messages back that their leases still hold, due after a delay, or untouched. p_firsts is the first push of one
-- that gets new headers, 0 for none. One that was replaced in flight waits as it is. Outcome 3: lease lost.
CREATE OR REPLACE FUNCTION public.delayq_nack(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], p_delays bigint[], p_untouched boolean[],
    p_renew boolean[], p_headers bytea[], p_firsts bigint[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    done int[];
BEGIN
    now := t;
    WITH d AS (
        UPDATE public.delayq_messages m
        SET state = 0, at = CASE WHEN u.untouched OR m.attempts = 0 THEN m.due ELSE t + u.delay END,
            due = CASE WHEN u.untouched OR m.attempts = 0 THEN m.due ELSE t + u.delay END,
            token = NULL, attempts = greatest(m.attempts - u.untouched::int, 0),
            headers = CASE WHEN u.renew AND m.attempts > 0 THEN nullif(u.headers, '') ELSE m.headers END,
            first_push = CASE WHEN u.renew AND m.attempts > 0 THEN nullif(u.first, 0) ELSE m.first_push END
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens, p_delays, p_untouched, p_renew, p_headers, p_firsts) WITH ORDINALITY
              u (id, token, delay, untouched, renew, headers, first, ord) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t
        RETURNING u.ord::int, m.due
    ) SELECT array_agg(d.ord), min(d.due) INTO done, soonest FROM d;
    IF coalesce(cardinality(done), 0) < cardinality(p_ids) THEN
        SELECT string_agg(o || ':3', ',') INTO outcomes FROM generate_series(1, cardinality(p_ids)) o WHERE o <> ALL (coalesce(done, '{}'));
    END IF;
END
$$;
