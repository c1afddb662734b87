-- Counts of the queue's messages: one row for ready, in flight and dead, with the first due time, and one for each
-- interval of scheduled messages that p_bounds end. Then the activity: one for pushes, one for acks, and one for each
-- interval of lateness, whose number comes second.
CREATE OR REPLACE FUNCTION public.delayq_stats(p_queue text, p_now bigint, p_bounds bigint[])
RETURNS TABLE (kind text, n bigint, first bigint, now bigint)
LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    t bigint := public.delayq_clock(p_now);
BEGIN
    RETURN QUERY
    SELECT 'ready', count(*), min(m.at), t FROM public.delayq_messages m WHERE m.queue = p_queue AND m.state = 0 AND m.at <= t
    UNION ALL
    SELECT k.kind, count(*), min(m.due), t
    FROM public.delayq_messages m, LATERAL (
        SELECT CASE WHEN m.at > t THEN 'in flight' WHEN m.due <= t THEN 'ready' -- a later one was replaced in flight
               ELSE (SELECT min(b.ord)::text FROM unnest(p_bounds) WITH ORDINALITY b (upto, ord) WHERE m.due <= t + b.upto) END AS kind
    ) k
    WHERE m.queue = p_queue AND m.state = 1 GROUP BY k.kind
    UNION ALL
    SELECT 'dead', count(*), NULL, t FROM public.delayq_messages m WHERE m.queue = p_queue AND m.state = 2
    UNION ALL
    SELECT u.kind, u.n, u.ord, t
    FROM public.delayq_counts c, LATERAL (
        VALUES ('pushed', c.pushed, 0::bigint), ('acked', c.acked, 0) UNION ALL SELECT 'late', l.n, l.ord FROM unnest(c.late) WITH ORDINALITY l (n, ord)
    ) u (kind, n, ord)
    WHERE c.queue = p_queue
    UNION ALL
    SELECT 'paused', 1, q.paused_until, t FROM public.delayq_queues q WHERE q.queue = p_queue AND q.paused_until > t
    UNION ALL
    SELECT b.ord::text, s.n, s.first, t
    FROM unnest(p_bounds) WITH ORDINALITY b (upto, ord), LATERAL (
        SELECT count(*) AS n, min(m.at) AS first FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.state = 0 AND m.at > t + CASE WHEN b.ord = 1 THEN 0 ELSE p_bounds[b.ord - 1] END AND m.at <= t + b.upto
    ) s;
END
$$;
