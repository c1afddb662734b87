-- Leases up to p_limit due messages, of some 8 MiB. The scans start at p_floor and p_lease_floor, so that they do not
-- walk over deleted messages. The last row has no id: due is the time now, seq when to look again (NULL: nothing is
-- known), until the first end of a lease; attempts is 1 while the
-- queue is paused, and first_push is where its scan began. p_floor below 0 looks at everything. p_again: a claim of this token was sent before, and its reply was lost:
-- it gets the same messages, under a lease that begins now. While the queue is paused it gives them back instead, untouched.
-- It passes by those that a transaction holds, and gets no others: when none is left, seq is the time now, and the
-- next claim has a token of its own.
-- SKIP LOCKED waits where a message was changed while it looked, and is being changed again. A claim locks in the order of times and others in that
-- of ids, so such a wait may be a deadlock: lock_timeout ends it first.
CREATE OR REPLACE FUNCTION public.delayq_claim(
    p_queue text, p_now bigint, p_limit int, p_lease bigint, p_token bigint, p_floor bigint, p_lease_floor bigint, p_again boolean
) RETURNS TABLE (id text, due bigint, seq bigint, attempts int, until bigint, first_push bigint, headers bytea, body bytea)
LANGUAGE plpgsql ROWS 100 SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off SET lock_timeout = '100ms' AS $$
#variable_conflict use_column
DECLARE
    t         bigint;
    floor_at  bigint := p_floor;
    lease_end bigint;
    paused    bigint;
    next_due  bigint;
    taken     int := 0;
    back      bigint;
    free      text[];
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('public.delayq_' || p_queue, 0)); -- against a pause
    t := public.delayq_clock(p_now);
    SELECT q.paused_until INTO paused FROM public.delayq_queues q WHERE q.queue = p_queue;
    IF paused <= t THEN
        DELETE FROM public.delayq_queues q WHERE q.queue = p_queue AND q.paused_until <= t;
        paused := NULL;
    END IF;
    IF p_again THEN
        WITH l AS MATERIALIZED (
            SELECT m.id FROM public.delayq_messages m WHERE m.queue = p_queue AND m.state = 1 AND m.token = p_token ORDER BY m.at, m.seq FOR UPDATE SKIP LOCKED
        ) SELECT array_agg(l.id) INTO free FROM l;
        -- what was replaced meanwhile is another message, which may not be due
        UPDATE public.delayq_messages m SET state = 0, at = m.due, token = NULL, attempts = greatest(m.attempts - 1, 0)
        FROM (SELECT u.*, p_queue AS queue FROM unnest(free) u (id) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND (m.attempts = 0 OR paused IS NOT NULL AND m.at + 0 > t);
        RETURN QUERY UPDATE public.delayq_messages m SET at = t + p_lease
        FROM (SELECT u.*, p_queue AS queue FROM unnest(free) u (id) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.at + 0 > t
        RETURNING m.id, m.due, m.seq, m.attempts, m.at, m.first_push, m.headers, m.body;
        RETURN QUERY SELECT NULL::text, t, t, NULL::int, t, NULL::bigint, NULL::bytea, NULL::bytea;
        RETURN;
    END IF;
    IF p_floor < 0 THEN -- the scan of everything, once in a while
        PERFORM public.delayq_sweep(p_queue, t, 1000);
    END IF;

    SELECT m.at INTO lease_end FROM public.delayq_messages m
    WHERE m.queue = p_queue AND m.state = 1 AND m.at >= p_lease_floor ORDER BY m.at, m.seq LIMIT 1;
    IF lease_end <= t THEN
        WITH e AS MATERIALIZED (
            SELECT m.queue, m.id FROM public.delayq_messages m
            WHERE m.queue = p_queue AND m.state = 1 AND m.at >= p_lease_floor AND m.at <= t
            FOR UPDATE SKIP LOCKED
        ), u AS (
            UPDATE public.delayq_messages m SET state = 0, at = m.due, token = NULL FROM e
            WHERE m.queue = e.queue AND m.id = e.id RETURNING m.due
        ) SELECT min(u.due) INTO back FROM u;
        floor_at := least(floor_at, back);
        SELECT m.at INTO lease_end FROM public.delayq_messages m
        WHERE m.queue = p_queue AND m.state = 1 AND m.at >= p_lease_floor ORDER BY m.at, m.seq LIMIT 1;
    END IF;

    IF paused IS NULL THEN
        RETURN QUERY
        WITH c AS MATERIALIZED (
            SELECT m.queue, m.id, octet_length(m.body) + coalesce(octet_length(m.headers), 0) AS size FROM public.delayq_messages m
            WHERE m.queue = p_queue AND m.state = 0 AND m.at >= floor_at AND m.at <= t
            ORDER BY m.at, m.seq LIMIT p_limit FOR UPDATE SKIP LOCKED
        ), b AS MATERIALIZED (
            SELECT s.queue, s.id FROM (SELECT c.queue, c.id, sum(c.size) OVER (ROWS UNBOUNDED PRECEDING) - c.size AS before FROM c) s WHERE s.before < 8388608
        )
        -- The leases begin when all rows are locked. Since t others may have had the messages, and have given them back.
        UPDATE public.delayq_messages m SET state = 1, at = (SELECT public.delayq_clock(p_now) + 0 * count(*) FROM c) + p_lease,
            token = p_token, attempts = m.attempts + 1
        FROM b WHERE m.queue = b.queue AND m.id = b.id
        RETURNING m.id, m.due, m.seq, m.attempts, m.at, m.first_push, m.headers, m.body;
        GET DIAGNOSTICS taken = ROW_COUNT;
        IF taken > 0 THEN
            next_due := t; -- there may be more
        ELSE
            SELECT m.at INTO next_due FROM public.delayq_messages m
            WHERE m.queue = p_queue AND m.state = 0 AND m.at > t ORDER BY m.at, m.seq LIMIT 1;
        END IF;
    ELSE
        next_due := paused;
    END IF;
    RETURN QUERY SELECT NULL::text, t, next_due, CASE WHEN paused IS NOT NULL THEN 1 END, lease_end, floor_at, NULL::bytea, NULL::bytea;
END
$$;
