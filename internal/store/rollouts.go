package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// Rollout is a rollout's row.
type Rollout struct {
	Seq       int64 // order of creation, set by InsertRollout
	ID        string
	GroupID   string
	TaskID    string
	Policy    string
	Status    string
	TokenHash []byte
	Box       string // the engine's id of its sandbox
	CreatedAt time.Time
	Doc       []byte // JSON, the caller's own
}

const rolloutColumns = `seq, id, group_id, task_id, policy, status, token_hash, box, created_at, doc`

// InsertRollout adds a rollout and sets its Seq. ErrExists where the id is taken.
func (s *Store) InsertRollout(ctx context.Context, r *Rollout) error {
	res, err := s.write.ExecContext(ctx,
		`INSERT INTO rollouts (id, group_id, task_id, policy, status, token_hash, box, created_at, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.GroupID, r.TaskID, r.Policy, r.Status, r.TokenHash, r.Box, r.CreatedAt.UnixNano(), r.Doc)
	if err != nil {
		return classify("add a rollout", err)
	}
	if r.Seq, err = res.LastInsertId(); err != nil {
		return classify("add a rollout", err)
	}
	s.seqs.Store(r.ID, r.Seq)
	return nil
}

// UpdateRollout writes a rollout's status, token hash, sandbox and document.
func (s *Store) UpdateRollout(ctx context.Context, r *Rollout) error {
	ctx = context.WithoutCancel(ctx)
	_, err := s.write.ExecContext(ctx, `UPDATE rollouts SET status = ?, token_hash = ?, box = ?, doc = ? WHERE id = ?`,
		r.Status, r.TokenHash, r.Box, r.Doc, r.ID)
	return classify("update a rollout", err)
}

// DropRollout removes a rollout that never came to be, with the key it was made under. Its seq is
// never given again, so that calls it may have had cannot become another's.
func (s *Store) DropRollout(ctx context.Context, id string) error {
	defer s.seqs.Delete(id)
	return s.inTx(ctx, "drop a rollout", func(tx *sql.Tx) error {
		for _, text := range []string{`DELETE FROM keys WHERE target = ?`, `DELETE FROM events WHERE rollout = ?`, `DELETE FROM rollouts WHERE id = ?`} {
			if _, err := tx.Exec(text, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// RolloutByID gives one rollout. ErrNotFound where there is none.
func (s *Store) RolloutByID(ctx context.Context, id string) (*Rollout, error) {
	return scanRollout(s.read.QueryRowContext(ctx, `SELECT `+rolloutColumns+` FROM rollouts WHERE id = ?`, id))
}

// Filter picks rollouts. Zero fields pick all.
type Filter struct {
	Statuses []string
	GroupID  string
	TaskID   string
	Policy   string
	Before   int64 // Seq to go on below; listings are newest first
	Limit    int   // 0 for all
}

// Rollouts lists rollouts, newest first.
func (s *Store) Rollouts(ctx context.Context, f Filter) ([]*Rollout, error) {
	where, args := []string{"1"}, []any{}
	add := func(text string, values ...any) { where, args = append(where, text), append(args, values...) }
	if len(f.Statuses) > 0 {
		values := make([]any, len(f.Statuses))
		for i, status := range f.Statuses {
			values[i] = status
		}
		add("status IN (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	}
	for column, value := range map[string]string{"group_id": f.GroupID, "task_id": f.TaskID, "policy": f.Policy} {
		if value != "" {
			add(column+" = ?", value)
		}
	}
	if f.Before > 0 {
		add("seq < ?", f.Before)
	}
	text := `SELECT ` + rolloutColumns + ` FROM rollouts WHERE ` + strings.Join(where, " AND ") + ` ORDER BY seq DESC`
	if f.Limit > 0 {
		text, args = text+` LIMIT ?`, append(args, f.Limit)
	}
	rows, err := s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, classify("list rollouts", err)
	}
	defer rows.Close()
	var all []*Rollout
	for rows.Next() {
		r, err := scanRollout(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, classify("list rollouts", rows.Err())
}

func scanRollout(row scanner) (*Rollout, error) {
	var r Rollout
	var created int64
	err := row.Scan(&r.Seq, &r.ID, &r.GroupID, &r.TaskID, &r.Policy, &r.Status, &r.TokenHash, &r.Box, &created, &r.Doc)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, classify("read a rollout", err)
	}
	r.CreatedAt = time.Unix(0, created).UTC()
	return &r, nil
}

// inTx runs fn in one transaction.
func (s *Store) inTx(ctx context.Context, what string, fn func(*sql.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return classify(what, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return classify(what, err)
	}
	return classify(what, tx.Commit())
}
