-- The messages of ids, by their numbers in the call.
CREATE OR REPLACE FUNCTION public.delayq_get(p_queue text, p_now bigint, p_ids text[])
RETURNS TABLE (ord bigint, state smallint, due bigint, at bigint, seq bigint, attempts int, unique_until bigint, first_push bigint, headers bytea, body bytea, reason bytea)
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    t bigint := public.delayq_clock(p_now);
BEGIN
    RETURN QUERY
    SELECT u.ord, public.delayq_state(m.state, m.at, m.due, t), m.due, m.at, m.seq, m.attempts,
           CASE WHEN m.unique_until > t THEN m.unique_until END, m.first_push, m.headers, m.body, m.reason
    FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) WITH ORDINALITY u (id, ord) OFFSET 0) u JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id
    WHERE m.state + 0 < 3 OR m.at + 0 > t;
END
$$;
