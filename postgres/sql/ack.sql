-- Deletes messages that their leases still hold; one with UniqueFor leaves its id taken. One that was replaced in
-- flight waits. Outcome 3: lease lost.
-- "+ 0" keeps the planner from the index of times, which is slow here before the first ANALYZE: the ids find the rows. So does the queue that
-- comes with each id, in all functions: a plan that was made while the queue was empty would otherwise read all of the queue's messages.
-- They are sorted since all calls lock messages in the order of ids.
CREATE OR REPLACE FUNCTION public.delayq_ack(
    p_queue text, p_now bigint, p_ids text[], p_tokens bigint[], OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t      bigint := public.delayq_clock(p_now);
    wanted int    := cardinality(p_ids);
    done   int[];
    back   int[];
BEGIN
    now := t;
    FOR try IN 1..2 LOOP
        BEGIN -- A first try that did not delete all gives up its locks: the rest needs them in the order of ids.
            IF try = 2 THEN
                -- This fails where an old snapshot shows a message as it was before, such as before the renewal of its lease.
                PERFORM 1 FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids) u (id) OFFSET 0) u
                JOIN public.delayq_messages m ON m.queue = u.queue AND m.id = u.id ORDER BY m.id FOR UPDATE OF m;
            END IF;
            WITH d AS (
                DELETE FROM public.delayq_messages m USING (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord) ORDER BY u.id COLLATE "C") u
                WHERE m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND m.attempts > 0
                  AND (m.unique_until IS NULL OR m.unique_until <= t)
                RETURNING u.ord::int
            ) SELECT array_agg(d.ord) INTO done FROM d;
            IF coalesce(cardinality(done), 0) = wanted THEN
                RETURN;
            END IF;
            IF try = 1 THEN
                RAISE EXCEPTION 'some are not to be deleted' USING ERRCODE = 'DQ001';
            END IF;
        EXCEPTION WHEN SQLSTATE 'DQ001' THEN -- goes on with the second try
        END;
    END LOOP;
    WITH d AS (
        UPDATE public.delayq_messages m
        SET state = CASE WHEN m.attempts > 0 THEN 3 ELSE 0 END, at = CASE WHEN m.attempts > 0 THEN m.unique_until ELSE m.due END, token = NULL,
            headers = CASE WHEN m.attempts = 0 THEN m.headers END, body = CASE WHEN m.attempts = 0 THEN m.body ELSE '' END
        FROM (SELECT u.*, p_queue AS queue FROM unnest(p_ids, p_tokens) WITH ORDINALITY u (id, token, ord) ORDER BY u.id COLLATE "C") u
        WHERE m.queue = u.queue AND m.id = u.id AND m.state + 0 = 1 AND m.token = u.token AND m.at + 0 > t AND (m.attempts = 0 OR m.unique_until > t)
        RETURNING u.ord::int, CASE WHEN m.state = 0 THEN m.due END AS due
    ) SELECT array_agg(d.ord), min(d.due) INTO back, soonest FROM d;
    IF coalesce(cardinality(done), 0) + coalesce(cardinality(back), 0) < wanted
        AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        BEGIN -- An old snapshot may not show a message at all: this fails then, as nobody knows if its lease is lost.
            INSERT INTO public.delayq_messages (queue, id, state, at, seq, due, body)
            SELECT p_queue, u.id, 3, t, 0, t, '' FROM unnest(p_ids) u (id) ORDER BY u.id COLLATE "C"
            ON CONFLICT DO NOTHING;
            RAISE EXCEPTION 'the snapshot shows all that is there' USING ERRCODE = 'DQ001'; -- undoes the INSERT
        EXCEPTION WHEN SQLSTATE 'DQ001' THEN
        END;
    END IF;
    SELECT string_agg(o || ':3', ',') INTO outcomes FROM generate_series(1, wanted) o WHERE o <> ALL (coalesce(done, '{}') || coalesce(back, '{}'));
END
$$;
