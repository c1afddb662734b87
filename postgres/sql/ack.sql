-- Deletes messages that their leases still hold; one with UniqueFor leaves its id taken. One that was replaced in
-- flight waits. Outcome 3: lease lost.
-- "+ 0" keeps the planner from the index of times, which is slow here before the first ANALYZE: the ids find the rows.
CREATE OR REPLACE FUNCTION public.delayq_ack(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t      bigint := public.delayq_clock(p_now);
    wanted int    := cardinality(p_ids);
    done   int[];
    kept   int[];
    again  int[];
BEGIN
    now := t;
    WITH d AS (
        DELETE FROM public.delayq_messages m USING unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord)
        WHERE m.queue = p_queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND m.attempts > 0
          AND (m.unique_until IS NULL OR m.unique_until <= t)
        RETURNING u.ord::int
    ) SELECT array_agg(d.ord) INTO done FROM d;
    IF coalesce(cardinality(done), 0) = wanted THEN
        RETURN;
    END IF;
    WITH d AS (
        UPDATE public.delayq_messages m SET state = 3, at = m.unique_until, token = NULL, headers = NULL, body = ''
        FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord)
        WHERE m.queue = p_queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND m.attempts > 0 AND m.unique_until > t
        RETURNING u.ord::int
    ) SELECT array_agg(d.ord) INTO kept FROM d;
    IF coalesce(cardinality(done), 0) + coalesce(cardinality(kept), 0) < wanted THEN
        WITH d AS (
            UPDATE public.delayq_messages m SET state = 0, at = m.due, token = NULL
            FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord)
            WHERE m.queue = p_queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND m.attempts = 0
            RETURNING u.ord::int, m.due
        ) SELECT array_agg(d.ord), min(d.due) INTO again, soonest FROM d;
    END IF;
    IF coalesce(cardinality(done), 0) + coalesce(cardinality(kept), 0) + coalesce(cardinality(again), 0) < wanted
        AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        -- An old snapshot may show a lease as it was before its renewal: then this fails, as nobody knows if it is lost.
        PERFORM 1 FROM public.delayq_messages m WHERE m.queue = p_queue AND m.id = ANY (p_ids) ORDER BY m.id FOR UPDATE;
    END IF;
    SELECT string_agg(o || ':3', ',') INTO outcomes FROM generate_series(1, wanted) o WHERE o <> ALL (coalesce(done, '{}') || coalesce(kept, '{}') || coalesce(again, '{}'));
END
$$;
