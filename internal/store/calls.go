package store

import (
	"context"
	"database/sql"
	"errors"
)

// Call is one call of a rollout: its intent and, once it has one, its outcome.
type Call struct {
	Ordinal     int
	Principal   string
	Key         string // Idempotency-Key, "" for none
	Fingerprint string // of what was asked for
	BoxID       string
	BoxCommand  *string
	Intent      []byte // JSON

	Done        bool // it has an outcome; the fields below are set
	Event       int64
	Interrupted bool
	Cwd         string
	Outcome     []byte // JSON
}

// AppendIntent writes the intent of a call, before it acts. ErrExists where the ordinal is
// taken, ErrFull where the disk is full. The caller keeps keys unique within rollout and principal.
func (s *Store) AppendIntent(ctx context.Context, rollout string, c *Call) error {
	// An append is never given up half way because a client left.
	ctx = context.WithoutCancel(ctx)
	id, err := s.callID(ctx, rollout, c.Ordinal)
	if err != nil {
		return err
	}
	_, err = s.stmts.intent.ExecContext(ctx, id, c.Principal, c.Key, c.Fingerprint, c.BoxID, c.BoxCommand, c.Intent)
	return classify("append an intent", err)
}

// AppendOutcome writes the outcome of a call. ErrExists where it has one, ErrFull where the disk is
// full: the call then has none, and the same outcome can be appended again.
func (s *Store) AppendOutcome(ctx context.Context, rollout string, c *Call) error {
	ctx = context.WithoutCancel(ctx)
	id, err := s.callID(ctx, rollout, c.Ordinal)
	if err != nil {
		return err
	}
	_, err = s.stmts.outcome.ExecContext(ctx, id, c.Event, c.Interrupted, c.Cwd, c.Outcome)
	return classify("append an outcome", err)
}

// CallByKey gives the call that principal made under key. ErrNotFound where there is none.
func (s *Store) CallByKey(ctx context.Context, rollout, principal, key string) (*Call, error) {
	first, last, err := s.callIDs(ctx, rollout)
	if err != nil {
		return nil, err
	}
	return scanCall(s.stmts.byKey.QueryRowContext(ctx, first, last, principal, key))
}

// CallByOrdinal gives one call. ErrNotFound where there is none.
func (s *Store) CallByOrdinal(ctx context.Context, rollout string, ordinal int) (*Call, error) {
	id, err := s.callID(ctx, rollout, ordinal)
	if err != nil {
		return nil, err
	}
	return scanCall(s.stmts.one.QueryRowContext(ctx, id))
}

// Calls gives all calls of a rollout, by ordinal.
func (s *Store) Calls(ctx context.Context, rollout string) ([]*Call, error) {
	first, last, err := s.callIDs(ctx, rollout)
	if err != nil {
		return nil, err
	}
	return s.calls(ctx, callSQL+`WHERE i.id BETWEEN ? AND ? ORDER BY i.id`, first, last)
}

// CallsAfter gives the finished calls of a rollout whose event comes after number after, in the
// order in which they finished, at most limit.
func (s *Store) CallsAfter(ctx context.Context, rollout string, after int64, limit int) ([]*Call, error) {
	first, last, err := s.callIDs(ctx, rollout)
	if err != nil {
		return nil, err
	}
	return s.calls(ctx, callSQL+`WHERE i.id BETWEEN ? AND ? AND o.event > ? ORDER BY o.event LIMIT ?`, first, last, after, limit)
}

// MaxOrdinal bounds the calls of one rollout.
const MaxOrdinal = 1<<24 - 1

// callID gives the key of a call. ErrNotFound where the rollout does not exist.
func (s *Store) callID(ctx context.Context, rollout string, ordinal int) (int64, error) {
	first, last, err := s.callIDs(ctx, rollout)
	if err != nil {
		return 0, err
	}
	if ordinal < 1 || ordinal > MaxOrdinal {
		return last, ErrNotFound
	}
	return first + int64(ordinal), nil
}

// callIDs gives the range of the keys of a rollout's calls.
func (s *Store) callIDs(ctx context.Context, rollout string) (first, last int64, err error) {
	seq, ok := s.seqs.Load(rollout)
	if !ok {
		var n int64
		err := s.read.QueryRowContext(ctx, `SELECT seq FROM rollouts WHERE id = ?`, rollout).Scan(&n)
		if err != nil {
			return 0, 0, found("find a rollout", err)
		}
		s.seqs.Store(rollout, n)
		seq = n
	}
	n := seq.(int64)
	return n << 24, n<<24 + MaxOrdinal, nil
}

func (s *Store) calls(ctx context.Context, text string, args ...any) ([]*Call, error) {
	rows, err := s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, classify("read calls", err)
	}
	defer rows.Close()
	var all []*Call
	for rows.Next() {
		c, err := scanCall(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, classify("read calls", rows.Err())
}

type scanner interface{ Scan(dest ...any) error }

func scanCall(row scanner) (*Call, error) {
	var c Call
	var id int64
	var event sql.NullInt64
	err := row.Scan(&id, &c.Principal, &c.Key, &c.Fingerprint, &c.BoxID, &c.BoxCommand, &c.Intent,
		&event, &c.Interrupted, &c.Cwd, &c.Outcome)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, classify("read a call", err)
	}
	c.Ordinal = int(id & MaxOrdinal)
	c.Done, c.Event = event.Valid, event.Int64
	return &c, nil
}
