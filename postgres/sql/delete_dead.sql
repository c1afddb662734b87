-- Deletes dead letters; one with UniqueFor leaves its id taken. Outcome 2: no dead letter.
CREATE OR REPLACE FUNCTION public.delayq_delete_dead(
    p_queue text, p_now bigint, p_ids text[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t    bigint := public.delayq_clock(p_now);
    gone text[];
BEGIN
    now := t;
    WITH l AS MATERIALIZED (
        SELECT m.id FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.id = ANY (p_ids) AND m.state + 0 = 2 ORDER BY m.id FOR UPDATE
    ) SELECT string_agg(u.ord || ':2', ',') FILTER (WHERE l.id IS NULL), array_agg(l.id) FILTER (WHERE l.id IS NOT NULL)
    INTO outcomes, gone
    FROM unnest(p_ids) WITH ORDINALITY u (id, ord) LEFT JOIN l ON l.id = u.id;
    DELETE FROM public.delayq_messages m
    WHERE m.queue = p_queue AND m.id = ANY (gone) AND (m.unique_until IS NULL OR m.unique_until <= t);
    UPDATE public.delayq_messages m SET state = 3, at = m.unique_until, headers = NULL, body = '', reason = NULL
    WHERE m.queue = p_queue AND m.id = ANY (gone) AND m.unique_until > t;
END
$$;
