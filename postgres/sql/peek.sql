-- Messages that wait, or dead letters, behind a place, of some 8 MiB. A message whose lease has ended waits at its old place.
CREATE OR REPLACE FUNCTION public.delayq_peek(p_queue text, p_now bigint, p_dead boolean, p_at bigint, p_seq bigint, p_limit int, p_contents boolean)
RETURNS TABLE (id text, state smallint, due bigint, at bigint, seq bigint, attempts int, first_push bigint, headers bytea, body bytea, reason bytea)
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    t bigint := public.delayq_clock(p_now);
BEGIN
    RETURN QUERY
    WITH w AS (
        SELECT * FROM (
            SELECT m.queue, m.id, m.at AS place, m.seq FROM public.delayq_messages m
            WHERE m.queue = p_queue AND m.state = CASE WHEN p_dead THEN 2 ELSE 0 END AND (m.at, m.seq) > (p_at, p_seq)
            ORDER BY m.at, m.seq LIMIT p_limit
        ) waiting
        UNION ALL
        SELECT * FROM (
            SELECT m.queue, m.id, m.due AS place, m.seq FROM public.delayq_messages m
            WHERE NOT p_dead AND m.queue = p_queue AND m.state = 1 AND m.at <= t AND (m.due, m.seq) > (p_at, p_seq)
            ORDER BY m.due, m.seq LIMIT p_limit
        ) ended
    ), f AS MATERIALIZED (SELECT * FROM w ORDER BY w.place, w.seq LIMIT p_limit),
    s AS MATERIALIZED (
        SELECT m.*, f.place, sum(octet_length(m.body) + coalesce(octet_length(m.headers), 0) + coalesce(octet_length(m.reason), 0))
               OVER (ORDER BY f.place, f.seq) - octet_length(m.body) AS before
        FROM f JOIN public.delayq_messages m ON m.queue = f.queue AND m.id = f.id
    )
    SELECT s.id, public.delayq_state(s.state, s.at, s.due, t), s.due, s.place, s.seq, s.attempts, s.first_push,
           CASE WHEN p_contents THEN s.headers END, CASE WHEN p_contents THEN s.body END, CASE WHEN p_contents THEN s.reason END
    FROM s WHERE s.before < 8388608 OR NOT p_contents
    ORDER BY s.place, s.seq;
END
$$;
