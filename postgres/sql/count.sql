-- Adds to the queue's counts of pushes and acks.
CREATE OR REPLACE FUNCTION public.delayq_count(p_queue text, p_pushed bigint, p_acked bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO public.delayq_counts AS c (queue, pushed, acked) VALUES (p_queue, p_pushed, p_acked)
    ON CONFLICT (queue) DO UPDATE SET pushed = c.pushed + excluded.pushed, acked = c.acked + excluded.acked
$$;
