-- Makes leases end p_lease from now. Outcomes: 3 lease lost, 4 locked by another transaction. soonest is the new end.
-- It passes by locked messages: while it waited for one, the leases of all others would end.
CREATE OR REPLACE FUNCTION public.delayq_extend(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], p_lease bigint, OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    done int[];
BEGIN
    now := t;
    soonest := t + p_lease;
    WITH l AS MATERIALIZED (
        SELECT m.queue, m.id, u.ord
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord) OFFSET 0) u
        JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id
        WHERE m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t ORDER BY m.id FOR UPDATE OF m SKIP LOCKED
    ), d AS (
        UPDATE public.delayq_messages m SET at = t + p_lease FROM l
        WHERE m.queue = l.queue AND m.id = l.id
        RETURNING l.ord::int
    ) SELECT array_agg(d.ord) INTO done FROM d;
    IF coalesce(cardinality(done), 0) < cardinality(p_ids) THEN
        SELECT string_agg(u.ord || CASE WHEN m.id IS NULL THEN ':3' ELSE ':4' END, ',') INTO outcomes
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord) OFFSET 0) u
        LEFT JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t
        WHERE u.ord <> ALL (coalesce(done, '{}'));
    END IF;
END
$$;
