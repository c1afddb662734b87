-- Moves messages that wait to new due times, at their old places among those of one due time. Outcomes: 1 in flight,
-- 2 not found.
CREATE OR REPLACE FUNCTION public.delayq_reschedule(
    p_queue text, p_now bigint, p_ids text[], p_dues bigint[], p_delays bigint[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t     bigint := public.delayq_clock(p_now);
    waits text[];
    held  text[];
BEGIN
    now := t;
    WITH l AS MATERIALIZED (
        SELECT m.id, CASE WHEN m.state = 1 AND m.at <= t THEN 0 ELSE m.state END AS state FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) u (id) OFFSET 0) u
        JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id ORDER BY m.id FOR UPDATE OF m
    ) SELECT array_agg(l.id) FILTER (WHERE l.state = 0), array_agg(l.id) FILTER (WHERE l.state = 1) INTO waits, held FROM l;
    IF coalesce(cardinality(waits), 0) < cardinality(p_ids) THEN
        SELECT string_agg(u.ord || ':' || CASE WHEN u.id = ANY (held) THEN 1 ELSE 2 END, ',') INTO outcomes
        FROM unnest(p_ids) WITH ORDINALITY u (id, ord) WHERE u.id <> ALL (coalesce(waits, '{}'));
    END IF;
    WITH d AS (
        UPDATE public.delayq_messages m SET state = 0, at = d.due, due = d.due, token = NULL
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_dues, p_delays) u (id, due, delay) ORDER BY u.id COLLATE "C") u,
            LATERAL (SELECT CASE WHEN u.due >= 0 THEN u.due ELSE t + u.delay END AS due) d
        WHERE m.queue = u.queue AND m.id = u.id AND (outcomes IS NULL OR u.id = ANY (waits))
        RETURNING m.due
    ) SELECT min(d.due) INTO soonest FROM d;
END
$$;
