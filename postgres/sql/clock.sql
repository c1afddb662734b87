-- Microseconds since 1970: the given time, or the server's clock for NULL. clock_timestamp() goes on within a
-- transaction; now() stands still.
CREATE OR REPLACE FUNCTION public.delayq_clock(p_now bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;
