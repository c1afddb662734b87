-- The names of all queues that have messages or a pause. It jumps from name to name in the index.
CREATE OR REPLACE FUNCTION public.delayq_list_queues() RETURNS TABLE (queue text)
LANGUAGE sql STABLE SET jit = off SET enable_seqscan = off AS $$
    WITH RECURSIVE n AS (
        (SELECT m.queue FROM public.delayq_messages m ORDER BY m.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT m.queue FROM public.delayq_messages m WHERE m.queue > n.queue ORDER BY m.queue LIMIT 1) FROM n WHERE n.queue IS NOT NULL
    )
    SELECT n.queue FROM n WHERE n.queue IS NOT NULL UNION SELECT q.queue FROM public.delayq_queues q ORDER BY 1
$$;
