-- Sets the end of the queue's pause: a time, after a delay, NULL and NULL for no end. Claims that began before have
-- ended when it returns.
CREATE OR REPLACE FUNCTION public.delayq_pause(p_queue text, p_now bigint, p_until bigint, p_for bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('public.delayq_' || p_queue, 0));
    INSERT INTO public.delayq_queues AS q (queue, paused_until)
    VALUES (p_queue, coalesce(p_until, public.delayq_clock(p_now) + p_for, 9223372036854775807))
    ON CONFLICT (queue) DO UPDATE SET paused_until = excluded.paused_until;
END
$$;
