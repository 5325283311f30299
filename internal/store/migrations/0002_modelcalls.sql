-- Version 2: token-exact records.
--
-- A model call's id is built like a tool call's: its rollout's seq * 2^24 + its ordinal. The document
-- holds only what the call adds to the one that it goes on from, so that a long conversation costs
-- what it says once, not once a turn.
CREATE TABLE model_calls (
  id      INTEGER PRIMARY KEY,
  key     BLOB NOT NULL,                   -- SHA-256 of the Idempotency-Key, empty for none
  request BLOB NOT NULL,                   -- SHA-256 of the request's body
  doc     BLOB NOT NULL                    -- the caller's own
);

-- Segments that a trainer uploaded.
CREATE TABLE segments (
  rollout TEXT    NOT NULL,
  place   INTEGER NOT NULL,                -- order in the rollout
  digest  TEXT    NOT NULL,                -- SHA-256 of what was uploaded
  doc     BLOB    NOT NULL,
  PRIMARY KEY (rollout, place)
) WITHOUT ROWID;
