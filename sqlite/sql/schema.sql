-- A store has version 1 of these tables. Times are nanoseconds since 1970.
CREATE TABLE delayq_store (
  version INTEGER NOT NULL,
  next    INTEGER NOT NULL -- the next number of a message, a place or a claim
) STRICT;
INSERT INTO delayq_store VALUES (1, 1);

CREATE TABLE delayq_queue (
  number       INTEGER PRIMARY KEY AUTOINCREMENT,
  name         TEXT NOT NULL UNIQUE,
  paused_until INTEGER NOT NULL DEFAULT 0, -- the largest integer for a pause without an end
  activity     TEXT NOT NULL DEFAULT '[]' -- counts as JSON: of pushes, acks, and hand-outs by how late they were
) STRICT;

-- One row for each id: of a message, or of one that is done while UniqueFor keeps its id.
CREATE TABLE delayq_message (
  queue        INTEGER NOT NULL,
  id           BLOB    NOT NULL, -- packed: see internal/record
  state        INTEGER NOT NULL, -- 0 waiting, 1 in flight, 2 dead, 3 done
  at           INTEGER NOT NULL, -- when it is due, its lease ends, it died, its window ends
  place        INTEGER NOT NULL, -- push order; among dead letters, the order of deaths
  due          INTEGER NOT NULL,
  attempts     INTEGER NOT NULL, -- in flight, 0 once the message was replaced: due, place and content are the new one's
  token        INTEGER NOT NULL, -- the number of the claim that leased it
  unique_until INTEGER NOT NULL,
  content      INTEGER NOT NULL, -- its key in delayq_content
  reason       TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX delayq_message_by_time ON delayq_message (queue, state, at, place);

-- Apart from the rows that change with each hand-out, so that a large body is written once.
CREATE TABLE delayq_content (
  key     INTEGER PRIMARY KEY,
  headers BLOB,
  body    BLOB NOT NULL
) STRICT;
