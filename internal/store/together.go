package store

import (
	"context"
	"errors"
	"sync"
)

// maxTogether bounds the rows of one transaction: beyond that many a commit costs little of the whole, and the
// first of them would only wait longer.
const maxTogether = 128

// together commits rows of one statement that several callers append at the same time in one transaction: a
// commit is most of what an append costs. Nobody waits for company: the first caller commits at once,
// those who come meanwhile are committed by the first of them. What a caller is told is of its row alone.
type together struct {
	mu      sync.Mutex
	waiting []*row
	busy    bool // somebody commits
}

// row is one append under way.
type row struct {
	args  []any
	err   error
	leads bool          // it is to commit those that wait, itself first
	wake  chan struct{} // closed once err is set, or leads
}

// append runs the statement with args. It is durable when it returns.
func (t *together) append(s *Store, args ...any) error {
	r := &row{args: args, wake: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, r)
	if t.busy {
		t.mu.Unlock()
		<-r.wake
		if !r.leads {
			return r.err
		}
		t.mu.Lock()
	}
	t.busy = true
	batch := t.waiting[:min(len(t.waiting), maxTogether)]
	t.waiting = t.waiting[len(batch):]
	t.mu.Unlock()

	s.appendRows(batch)

	t.mu.Lock()
	if t.busy = len(t.waiting) > 0; t.busy {
		t.waiting[0].leads = true
		close(t.waiting[0].wake)
	}
	t.mu.Unlock()
	for _, other := range batch {
		if other != r {
			close(other.wake)
		}
	}
	return r.err
}

// appendRows writes model calls, in one transaction where that goes. Where it does not (the disk is full), the
// transaction is gone as a whole, and each row is tried by itself, so that each caller learns what became of its own.
func (s *Store) appendRows(batch []*row) {
	if len(batch) > 1 && s.appendAtOnce(batch) == nil {
		return
	}
	for _, r := range batch {
		_, r.err = s.stmts.modelCall.ExecContext(context.Background(), r.args...)
	}
}

func (s *Store) appendAtOnce(batch []*row) error {
	tx, err := s.write.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	stmt := tx.Stmt(s.stmts.modelCall)
	for _, r := range batch {
		// A row whose place is taken fails alone: SQLite takes back the statement, not the transaction.
		if _, r.err = stmt.Exec(r.args...); r.err != nil && !errors.Is(sentinelOf(r.err), ErrExists) {
			return r.err
		}
	}
	return tx.Commit()
}
