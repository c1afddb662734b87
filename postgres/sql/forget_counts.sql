-- Deletes the queue's activity.
CREATE OR REPLACE FUNCTION public.delayq_forget_counts(p_queue text) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM public.delayq_counts c WHERE c.queue = p_queue
$$;
