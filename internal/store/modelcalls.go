package store

import (
	"context"
	"database/sql"
)

// ModelCall is one recorded call of the policy.
type ModelCall struct {
	Ordinal int
	Key     []byte // SHA-256 of the Idempotency-Key, empty for none
	Request []byte // SHA-256 of the request's body
	Doc     []byte
}

// AppendModelCall writes a model call. ErrExists where the ordinal is taken, ErrFull where the disk
// is full.
func (s *Store) AppendModelCall(ctx context.Context, rollout string, c *ModelCall) error {
	id, err := s.callID(context.WithoutCancel(ctx), rollout, c.Ordinal)
	if err != nil {
		return err
	}
	return classify("append a model call", s.models.append(s, id, blob(c.Key), blob(c.Request), c.Doc))
}

// blob gives b as what a NOT NULL column takes: the driver writes nil as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// ModelCalls gives all model calls of a rollout, by ordinal.
func (s *Store) ModelCalls(ctx context.Context, rollout string) ([]*ModelCall, error) {
	first, last, err := s.callIDs(ctx, rollout)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT id, key, request, doc FROM model_calls WHERE id BETWEEN ? AND ? ORDER BY id`, first, last)
	if err != nil {
		return nil, classify("read model calls", err)
	}
	defer func() { _ = rows.Close() }()
	var all []*ModelCall
	for rows.Next() {
		var c ModelCall
		var id int64
		if err := rows.Scan(&id, &c.Key, &c.Request, &c.Doc); err != nil {
			return nil, classify("read model calls", err)
		}
		c.Ordinal = int(id & MaxOrdinal)
		all = append(all, &c)
	}
	return all, classify("read model calls", rows.Err())
}

// Segment is one uploaded segment.
type Segment struct {
	Place  int
	Digest string
	Doc    []byte
}

// AddSegments writes uploaded segments, all or none. ErrExists where a place is taken.
func (s *Store) AddSegments(ctx context.Context, rollout string, list []Segment) error {
	return s.inTx(ctx, "add segments", func(tx *sql.Tx) error {
		for _, g := range list {
			if _, err := tx.Exec(`INSERT INTO segments (rollout, place, digest, doc) VALUES (?, ?, ?, ?)`, rollout, g.Place, g.Digest, g.Doc); err != nil {
				return err
			}
		}
		return nil
	})
}

// Segments gives the uploaded segments of a rollout, in order.
func (s *Store) Segments(ctx context.Context, rollout string) ([]Segment, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT place, digest, doc FROM segments WHERE rollout = ? ORDER BY place`, rollout)
	if err != nil {
		return nil, classify("read segments", err)
	}
	defer func() { _ = rows.Close() }()
	var all []Segment
	for rows.Next() {
		var g Segment
		if err := rows.Scan(&g.Place, &g.Digest, &g.Doc); err != nil {
			return nil, classify("read segments", err)
		}
		all = append(all, g)
	}
	return all, classify("read segments", rows.Err())
}
