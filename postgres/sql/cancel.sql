-- Deletes messages that wait; one with UniqueFor leaves its id taken. Outcomes: 1 in flight, 2 not found.
CREATE OR REPLACE FUNCTION public.delayq_cancel(
    p_queue text, p_now bigint, p_ids text[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t      bigint := public.delayq_clock(p_now);
    gone   text[];
    held   text[];
BEGIN
    now := t;
    WITH l AS MATERIALIZED (
        SELECT m.id, CASE WHEN m.state = 1 AND m.at <= t THEN 0 ELSE m.state END AS state FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) u (id) OFFSET 0) u
        JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id ORDER BY m.id FOR UPDATE OF m
    ) SELECT array_agg(l.id) FILTER (WHERE l.state = 0), array_agg(l.id) FILTER (WHERE l.state = 1) INTO gone, held FROM l;
    IF coalesce(cardinality(gone), 0) < cardinality(p_ids) THEN
        SELECT string_agg(u.ord || ':' || CASE WHEN u.id = ANY (held) THEN 1 ELSE 2 END, ',') INTO outcomes
        FROM unnest(p_ids) WITH ORDINALITY u (id, ord) WHERE u.id <> ALL (coalesce(gone, '{}'));
    END IF;
    DELETE FROM public.delayq_messages m USING (SELECT u.*, p_queue AS queue FROM unnest(gone) u (id) ORDER BY u.id COLLATE "C") u
    WHERE m.queue = u.queue AND m.id = u.id AND (m.unique_until IS NULL OR m.unique_until <= t);
    UPDATE public.delayq_messages m SET state = 3, at = m.unique_until, token = NULL, headers = NULL, body = ''
    FROM (SELECT u.*, p_queue AS queue FROM unnest(gone) u (id) ORDER BY u.id COLLATE "C") u
    WHERE m.queue = u.queue AND m.id = u.id AND m.unique_until > t;
END
$$;
