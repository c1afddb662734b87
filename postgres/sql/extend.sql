-- Makes leases end p_lease from now. Outcome 3: lease lost. soonest is the new end.
CREATE OR REPLACE FUNCTION public.delayq_extend(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], p_lease bigint, OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    done int[];
BEGIN
    now := t;
    soonest := t + p_lease;
    WITH d AS (
        UPDATE public.delayq_messages m SET at = t + p_lease
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t
        RETURNING u.ord::int
    ) SELECT array_agg(d.ord) INTO done FROM d;
    IF coalesce(cardinality(done), 0) < cardinality(p_ids) THEN
        SELECT string_agg(o || ':3', ',') INTO outcomes FROM generate_series(1, cardinality(p_ids)) o WHERE o <> ALL (coalesce(done, '{}'));
    END IF;
END
$$;
