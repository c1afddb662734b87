-- Stores messages in order, of which some take the place of one that waits, and those of p_in_flight of one in flight
-- too: its lease goes on, and attempts of 0 say that it was replaced. Outcomes are as those of push, and 1 for one in
-- flight.
CREATE OR REPLACE FUNCTION public.delayq_replace(
    p_queue text, p_now bigint, p_ids text[], p_dues bigint[], p_delays bigint[], p_uniques bigint[], p_headers bytea[], p_bodies bytea[],
    p_replaces boolean[], p_waits bigint[], p_in_flight boolean[],
    OUT outcomes text, OUT now bigint, OUT soonest bigint
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t     bigint := public.delayq_clock(p_now);
    call  bigint := nextval('public.delayq_calls') << 20;
    was   record;
    state int;
    held  boolean;
    first bigint;
    due   bigint;
    i     int;
BEGIN
    now := t;
    -- all calls lock in one order
    FOREACH i IN ARRAY (SELECT array_agg(u.ord::int ORDER BY u.id COLLATE "C") FROM unnest(p_ids) WITH ORDINALITY u (id, ord)) LOOP
        INSERT INTO public.delayq_messages AS m (queue, id, state, at, seq, due, body)
        VALUES (p_queue, p_ids[i], 3, t, call | i, t, '') -- an id that is free
        ON CONFLICT DO NOTHING;
        SELECT m.state, m.at, m.attempts, m.first_push INTO was FROM public.delayq_messages m WHERE m.queue = p_queue AND m.id = p_ids[i] FOR UPDATE;
        IF NOT FOUND THEN -- deleted between the two
            RAISE EXCEPTION 'a message of this id was deleted meanwhile' USING ERRCODE = 'serialization_failure';
        END IF;
        state := CASE WHEN was.state = 1 AND was.at <= t THEN 0 WHEN was.state = 3 AND was.at <= t THEN -1 ELSE was.state END;
        held := state = 1 AND p_in_flight[i];
        IF state > 0 AND NOT held OR state = 0 AND NOT p_replaces[i] THEN
            outcomes := concat_ws(',', outcomes, i || ':' || CASE WHEN state = 1 AND p_replaces[i] THEN 1 ELSE 10 + state END);
            CONTINUE;
        END IF;
        first := CASE WHEN p_waits[i] > 0 THEN coalesce(CASE WHEN state = 0 OR held AND was.attempts = 0 THEN was.first_push END, t) END;
        due := least(CASE WHEN p_dues[i] >= 0 THEN p_dues[i] ELSE t + p_delays[i] END, first + p_waits[i]);
        UPDATE public.delayq_messages m
        SET state = held::int, at = CASE WHEN held THEN m.at ELSE replace.due END, token = CASE WHEN held THEN m.token END,
            seq = call | i, due = replace.due, attempts = 0, first_push = first,
            headers = nullif(p_headers[i], ''), body = p_bodies[i],
            unique_until = CASE WHEN replace.state >= 0 THEN m.unique_until ELSE t + nullif(p_uniques[i], 0) END
        FROM (SELECT due, state) replace
        WHERE m.queue = p_queue AND m.id = p_ids[i];
        IF NOT held THEN
            soonest := least(soonest, due);
        END IF;
    END LOOP;
END
$$;
