-- Deletes up to p_limit ids whose UniqueFor has ended.
CREATE OR REPLACE FUNCTION public.delayq_sweep(p_queue text, p_now bigint, p_limit int) RETURNS int
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '100ms' AS $$
DECLARE
    t bigint := public.delayq_clock(p_now); -- as a call it would not bound the scan
    n int;
BEGIN
    WITH l AS MATERIALIZED (
        SELECT m.queue, m.id FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.state = 3 AND m.at <= t
        ORDER BY m.at, m.seq LIMIT p_limit FOR UPDATE SKIP LOCKED
    )
    DELETE FROM public.delayq_messages m USING l WHERE m.queue = l.queue AND m.id = l.id;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END
$$;
