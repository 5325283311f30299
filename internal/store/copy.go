package store

import (
	"context"
	"database/sql"
)

// CopyRecord copies the beginning of one rollout's record to another that has none: the calls up to an
// ordinal, with the outcomes and other events up to an event. Idempotency-Keys are left out: a key means a
// call of one rollout. ErrNotFound where either rollout does not exist.
func (s *Store) CopyRecord(ctx context.Context, from, to string, ordinal int, event int64) error {
	source, _, err := s.callIDs(ctx, from)
	if err != nil {
		return err
	}
	target, _, err := s.callIDs(ctx, to)
	if err != nil {
		return err
	}
	shift, first, last := target-source, source+1, source+int64(min(ordinal, MaxOrdinal))
	return s.inTx(ctx, "copy a record", func(tx *sql.Tx) error {
		for _, step := range []struct {
			text string
			args []any
		}{
			{`INSERT INTO intents (id, principal, key, fingerprint, box_id, box_command, doc)
				SELECT id + ?, principal, '', fingerprint, box_id, box_command, doc FROM intents WHERE id BETWEEN ? AND ?`, []any{shift, first, last}},
			{`INSERT INTO outcomes (id, event, interrupted, cwd, doc)
				SELECT id + ?, event, interrupted, cwd, doc FROM outcomes WHERE id BETWEEN ? AND ? AND event <= ?`, []any{shift, first, last, event}},
			{`INSERT INTO events (rollout, event, doc) SELECT ?, event, doc FROM events WHERE rollout = ? AND event <= ?`, []any{to, from, event}},
		} {
			if _, err := tx.ExecContext(ctx, step.text, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
}
