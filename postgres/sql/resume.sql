-- Ends the queue's pause.
CREATE OR REPLACE FUNCTION public.delayq_resume(p_queue text) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM public.delayq_queues q WHERE q.queue = p_queue
$$;
