-- Deletes messages that wait; one with UniqueFor leaves its id taken. Outcomes: 1 in flight, 2 not found.
CREATE OR REPLACE FUNCTION public.delayq_cancel(
    p_queue text, p_now bigint, p_ids text[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t      bigint := public.delayq_clock(p_now);
    gone   text[];
BEGIN
    now := t;
    WITH l AS MATERIALIZED (
        SELECT m.id, CASE WHEN m.state = 1 AND m.at <= t THEN 0 ELSE m.state END AS state FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.id = ANY (p_ids) ORDER BY m.id FOR UPDATE
    ) SELECT string_agg(u.ord || ':' || CASE WHEN l.state = 1 THEN 1 ELSE 2 END, ',') FILTER (WHERE l.state IS DISTINCT FROM 0),
             array_agg(l.id) FILTER (WHERE l.state = 0)
    INTO outcomes, gone
    FROM unnest(p_ids) WITH ORDINALITY u (id, ord) LEFT JOIN l ON l.id = u.id;
    DELETE FROM public.delayq_messages m
    WHERE m.queue = p_queue AND m.id = ANY (gone) AND (m.unique_until IS NULL OR m.unique_until <= t);
    UPDATE public.delayq_messages m SET state = 3, at = m.unique_until, token = NULL, headers = NULL, body = ''
    WHERE m.queue = p_queue AND m.id = ANY (gone) AND m.unique_until > t;
END
$$;
