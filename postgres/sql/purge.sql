-- Deletes what the queue has of up to p_limit ids after p_after, in the order of ids. last is the last of them, NULL
-- when there are no more; removed counts messages, and not ids that UniqueFor keeps.
CREATE OR REPLACE FUNCTION public.delayq_purge(p_queue text, p_after text, p_limit int, OUT last text, OUT removed bigint)
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    n bigint;
BEGIN
    SELECT max(s.id), count(*) INTO last, n FROM (
        SELECT m.id FROM public.delayq_messages m WHERE m.queue = p_queue AND m.id > p_after ORDER BY m.id LIMIT p_limit
    ) s;
    WITH d AS (
        DELETE FROM public.delayq_messages m WHERE m.queue = p_queue AND m.id > p_after AND m.id <= last RETURNING m.state
    ) SELECT count(*) FILTER (WHERE d.state <> 3) INTO removed FROM d;
    IF n < p_limit THEN
        last := NULL;
    END IF;
END
$$;
