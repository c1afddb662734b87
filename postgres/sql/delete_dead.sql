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
        SELECT m.id FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) u (id) OFFSET 0) u
        JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id WHERE m.state + 0 = 2 ORDER BY m.id FOR UPDATE OF m
    ) SELECT array_agg(l.id) INTO gone FROM l;
    IF coalesce(cardinality(gone), 0) < cardinality(p_ids) THEN
        SELECT string_agg(u.ord || ':2', ',') INTO outcomes
        FROM unnest(p_ids) WITH ORDINALITY u (id, ord) WHERE u.id <> ALL (coalesce(gone, '{}'));
    END IF;
    DELETE FROM public.delayq_messages m USING (SELECT u.*, p_queue AS queue FROM unnest(gone) u (id) ORDER BY u.id COLLATE "C") u
    WHERE m.queue = u.queue AND m.id = u.id AND (m.unique_until IS NULL OR m.unique_until <= t);
    UPDATE public.delayq_messages m SET state = 3, at = m.unique_until, headers = NULL, body = '', reason = NULL
    FROM (SELECT u.*, p_queue AS queue FROM unnest(gone) u (id) ORDER BY u.id COLLATE "C") u
    WHERE m.queue = u.queue AND m.id = u.id AND m.unique_until > t;
END
$$;
