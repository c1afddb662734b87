-- Adds to the queue's activity.
CREATE OR REPLACE FUNCTION public.delayq_count(p_queue text, p_pushed bigint, p_acked bigint, p_late bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO public.delayq_counts AS c (queue, pushed, acked, late) VALUES (p_queue, p_pushed, p_acked, p_late)
    ON CONFLICT (queue) DO UPDATE SET pushed = c.pushed + excluded.pushed, acked = c.acked + excluded.acked, late = (
        SELECT array_agg(coalesce(u.a, 0) + coalesce(u.b, 0) ORDER BY u.ord) FROM unnest(c.late, excluded.late) WITH ORDINALITY u (a, b, ord)
    )
$$;
