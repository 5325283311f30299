-- Version 1. The record is append-only: an intent and its outcome are rows of two tables, and
-- neither is ever rewritten, so that no later fault can touch what was recorded.
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE rollouts (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT, -- order of creation, the cursor of listings
  id         TEXT    NOT NULL UNIQUE,
  group_id   TEXT    NOT NULL DEFAULT '',
  task_id    TEXT    NOT NULL,
  policy     TEXT    NOT NULL DEFAULT '',
  status     TEXT    NOT NULL,
  token_hash BLOB    NOT NULL,             -- SHA-256 of the agent token
  box        TEXT    NOT NULL DEFAULT '',  -- the engine's id of the sandbox
  created_at INTEGER NOT NULL,             -- Unix nanoseconds
  doc        BLOB    NOT NULL              -- JSON, the manager's own
);
CREATE INDEX rollouts_by_group  ON rollouts (group_id, seq) WHERE group_id <> '';
CREATE INDEX rollouts_by_status ON rollouts (status, seq);

CREATE TABLE groups (
  id         TEXT PRIMARY KEY,
  task_id    TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  doc        BLOB    NOT NULL
) WITHOUT ROWID;

-- The id of a call is its rollout's seq * 2^24 + its ordinal: a table keyed by one integer appends
-- with one page written, where one keyed by (rollout, ordinal) rebalances three.
CREATE TABLE intents (
  id          INTEGER PRIMARY KEY,
  principal   TEXT    NOT NULL,
  key         TEXT    NOT NULL DEFAULT '', -- Idempotency-Key
  fingerprint TEXT    NOT NULL,            -- hash of what the caller asked for
  box_id      TEXT    NOT NULL DEFAULT '', -- what the sandbox knows the call by
  box_command TEXT,                        -- what is run in place of the agent's command
  doc         BLOB    NOT NULL             -- JSON
);
-- No index on key: it would double the pages that each append writes. A live rollout's keys are in
-- the server's memory, which also keeps them unique; looking one up in an ended rollout reads that
-- rollout's rows.

CREATE TABLE outcomes (
  id          INTEGER PRIMARY KEY,         -- that of its intent
  event       INTEGER NOT NULL,            -- its place among the rollout's events
  interrupted INTEGER NOT NULL DEFAULT 0,  -- it ended without an observation
  cwd         TEXT    NOT NULL DEFAULT '',
  doc         BLOB    NOT NULL             -- JSON
);

CREATE TABLE keys (
  scope  TEXT NOT NULL,                    -- what the key is for: create, group
  key    BLOB NOT NULL,                    -- SHA-256 of the Idempotency-Key
  hash   TEXT NOT NULL,                    -- of the request's body
  target TEXT NOT NULL,                    -- what was made
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX keys_by_target ON keys (target);

CREATE TABLE grades (
  rollout TEXT PRIMARY KEY,
  doc     BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE patches (
  rollout TEXT PRIMARY KEY,
  patch   BLOB NOT NULL                    -- a unified diff
) WITHOUT ROWID;

CREATE TABLE reviews (
  rollout TEXT    NOT NULL,
  ordinal INTEGER NOT NULL,
  doc     BLOB    NOT NULL,
  PRIMARY KEY (rollout, ordinal)
) WITHOUT ROWID;

CREATE TABLE events (
  rollout TEXT    NOT NULL,
  event   INTEGER NOT NULL,
  doc     BLOB    NOT NULL,
  PRIMARY KEY (rollout, event)
) WITHOUT ROWID;

CREATE TABLE images (
  key TEXT PRIMARY KEY,                    -- what the prepared image was made from
  doc BLOB NOT NULL
) WITHOUT ROWID;
