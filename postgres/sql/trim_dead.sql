-- Deletes up to p_limit of the oldest dead letters that are older than p_age or beyond the newest p_count; 0 is no bound.
CREATE OR REPLACE FUNCTION public.delayq_trim_dead(p_queue text, p_now bigint, p_age bigint, p_count bigint, p_limit int) RETURNS int
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t       bigint := public.delayq_clock(p_now);
    last_at bigint := -1; -- all letters up to this one go
    last    bigint := 0;
    gone    text[];
BEGIN
    IF p_count > 0 THEN
        SELECT m.at, m.seq INTO last_at, last FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.state = 2 ORDER BY m.at DESC, m.seq DESC OFFSET p_count LIMIT 1;
        last_at := coalesce(last_at, -1);
    END IF;
    IF p_age > 0 AND t - p_age >= last_at THEN
        last_at := t - p_age;
        last := 9223372036854775807;
    END IF;
    WITH l AS MATERIALIZED (
        SELECT m.id FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.state = 2 AND (m.at, m.seq) <= (last_at, last)
        ORDER BY m.at, m.seq LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) SELECT array_agg(l.id) INTO gone FROM l;
    DELETE FROM public.delayq_messages m USING (SELECT u.*, p_queue AS queue FROM unnest(gone) u (id) ORDER BY u.id COLLATE "C") u
    WHERE m.queue = u.queue AND m.id = u.id AND (m.unique_until IS NULL OR m.unique_until <= t);
    UPDATE public.delayq_messages m SET state = 3, at = m.unique_until, headers = NULL, body = '', reason = NULL
    FROM (SELECT u.*, p_queue AS queue FROM unnest(gone) u (id) ORDER BY u.id COLLATE "C") u
    WHERE m.queue = u.queue AND m.id = u.id AND m.unique_until > t;
    RETURN coalesce(cardinality(gone), 0);
END
$$;
