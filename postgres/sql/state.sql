-- The state as package backend has it: 1 scheduled, 2 ready, 3 in flight, 4 dead, 5 done.
CREATE OR REPLACE FUNCTION public.delayq_state(state smallint, at bigint, due bigint, t bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE WHEN state > 1 THEN state + 2 WHEN state = 1 AND at > t THEN 3 WHEN due <= t THEN 2 ELSE 1 END)::smallint
$$;
