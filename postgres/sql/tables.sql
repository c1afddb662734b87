-- One row for each id. A message keeps its row from its push to its end, in whatever state.
-- Times are microseconds since 1970 by the server's clock.
CREATE TABLE IF NOT EXISTS public.delayq_messages (
    queue        text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    state        smallint NOT NULL,  -- 0 waiting, 1 in flight, 2 dead, 3 gone while UniqueFor keeps the id
    at           bigint   NOT NULL,  -- by state: due, end of the lease, death, end of UniqueFor
    seq          bigint   NOT NULL,  -- push order, or order of deaths
    due          bigint   NOT NULL,
    attempts     integer  NOT NULL DEFAULT 0, -- in flight, 0 once it was replaced: all but state, at and token are the new one's
    token        bigint,             -- of the lease
    unique_until bigint,             -- NULL without UniqueFor
    first_push   bigint,             -- NULL without MaxWait
    headers      bytea,              -- NULL for none
    body         bytea    NOT NULL,
    reason       bytea,              -- of a dead letter
    PRIMARY KEY (queue, id)
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.1
);

-- The order of everything: waiting messages by due time, leases by their ends, dead letters by age.
CREATE INDEX IF NOT EXISTS delayq_messages_at ON public.delayq_messages (queue, state, at, seq);

-- Queues that are paused. 9223372036854775807 is a pause without an end.
CREATE TABLE IF NOT EXISTS public.delayq_queues (
    queue        text COLLATE "C" PRIMARY KEY,
    paused_until bigint NOT NULL
);

-- What was done with the messages of each queue. late counts hand-outs by how late they were.
CREATE TABLE IF NOT EXISTS public.delayq_counts (
    queue  text COLLATE "C" PRIMARY KEY,
    pushed bigint NOT NULL,
    acked  bigint NOT NULL,
    late   bigint[] NOT NULL
) WITH (fillfactor = 50);

-- One number for each call that pushes; its messages are numbered within.
CREATE SEQUENCE IF NOT EXISTS public.delayq_calls AS bigint;

-- The version of all this.
CREATE TABLE IF NOT EXISTS public.delayq_schema (version int NOT NULL);
