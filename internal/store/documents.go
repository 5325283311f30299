package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Key is an Idempotency-Key of a request that makes something. Only its hash is kept.
type Key struct {
	Scope  string
	Key    []byte // SHA-256 of the key
	Hash   string // of the request
	Target string // the id of what was made
}

// ClaimKey writes k unless its scope and key are taken; then it gives the one that is there.
func (s *Store) ClaimKey(ctx context.Context, k Key) (have Key, claimed bool, err error) {
	res, err := s.write.ExecContext(ctx, `INSERT INTO keys (scope, key, hash, target) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		k.Scope, k.Key, k.Hash, k.Target)
	if err != nil {
		return Key{}, false, classify("claim a key", err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 1 {
		return k, true, nil
	}
	have = Key{Scope: k.Scope, Key: k.Key}
	err = s.write.QueryRowContext(ctx, `SELECT hash, target FROM keys WHERE scope = ? AND key = ?`, k.Scope, k.Key).Scan(&have.Hash, &have.Target)
	return have, false, classify("read a key", err)
}

// DropKey frees the keys whose target is given, so that the request can be made again.
func (s *Store) DropKey(ctx context.Context, target string) error {
	_, err := s.write.ExecContext(context.WithoutCancel(ctx), `DELETE FROM keys WHERE target = ?`, target)
	return classify("drop a key", err)
}

// Keys gives the targets of all keys of a scope.
func (s *Store) Keys(ctx context.Context, scope string) ([]Key, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT key, hash, target FROM keys WHERE scope = ?`, scope)
	if err != nil {
		return nil, classify("read keys", err)
	}
	defer rows.Close()
	var all []Key
	for rows.Next() {
		k := Key{Scope: scope}
		if err := rows.Scan(&k.Key, &k.Hash, &k.Target); err != nil {
			return nil, classify("read keys", err)
		}
		all = append(all, k)
	}
	return all, classify("read keys", rows.Err())
}

// Group is a group's row.
type Group struct {
	ID        string
	TaskID    string
	CreatedAt time.Time
	Doc       []byte
}

// PutGroup writes a group.
func (s *Store) PutGroup(ctx context.Context, g Group) error {
	_, err := s.write.ExecContext(ctx, `INSERT INTO groups (id, task_id, created_at, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, g.ID, g.TaskID, g.CreatedAt.UnixNano(), g.Doc)
	return classify("write a group", err)
}

// DropGroup removes a group.
func (s *Store) DropGroup(ctx context.Context, id string) error {
	_, err := s.write.ExecContext(context.WithoutCancel(ctx), `DELETE FROM groups WHERE id = ?`, id)
	return classify("drop a group", err)
}

// GroupIDs gives the ids of all groups.
func (s *Store) GroupIDs(ctx context.Context) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id FROM groups ORDER BY created_at`)
	if err != nil {
		return nil, classify("list groups", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, classify("list groups", err)
		}
		ids = append(ids, id)
	}
	return ids, classify("list groups", rows.Err())
}

// GroupByID gives one group. ErrNotFound where there is none.
func (s *Store) GroupByID(ctx context.Context, id string) (Group, error) {
	g := Group{ID: id}
	var created int64
	err := s.read.QueryRowContext(ctx, `SELECT task_id, created_at, doc FROM groups WHERE id = ?`, id).Scan(&g.TaskID, &created, &g.Doc)
	g.CreatedAt = time.Unix(0, created).UTC()
	return g, found("read a group", err)
}

// PutGrade writes the grade of a rollout.
func (s *Store) PutGrade(ctx context.Context, rollout string, doc []byte) error {
	return s.put(ctx, "write a grade", `INSERT INTO grades (rollout, doc) VALUES (?, ?) ON CONFLICT (rollout) DO UPDATE SET doc = excluded.doc`, rollout, doc)
}

// Grade gives the grade of a rollout. ErrNotFound where it has none.
func (s *Store) Grade(ctx context.Context, rollout string) ([]byte, error) {
	return s.doc(ctx, "read a grade", `SELECT doc FROM grades WHERE rollout = ?`, rollout)
}

// PutPatch keeps the work of a rollout as a unified diff.
func (s *Store) PutPatch(ctx context.Context, rollout string, patch []byte) error {
	return s.put(ctx, "write a patch", `INSERT INTO patches (rollout, patch) VALUES (?, ?) ON CONFLICT (rollout) DO UPDATE SET patch = excluded.patch`, rollout, patch)
}

// Patch gives what PutPatch kept. ErrNotFound where there is nothing.
func (s *Store) Patch(ctx context.Context, rollout string) ([]byte, error) {
	return s.doc(ctx, "read a patch", `SELECT patch FROM patches WHERE rollout = ?`, rollout)
}

// PutReview writes what a person says of a call's verdict; the last one counts.
func (s *Store) PutReview(ctx context.Context, rollout string, ordinal int, doc []byte) error {
	return s.put(ctx, "write a review", `INSERT INTO reviews (rollout, ordinal, doc) VALUES (?, ?, ?)
		ON CONFLICT (rollout, ordinal) DO UPDATE SET doc = excluded.doc`, rollout, ordinal, doc)
}

// Reviews gives the reviews of a rollout by ordinal.
func (s *Store) Reviews(ctx context.Context, rollout string) (map[int][]byte, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT ordinal, doc FROM reviews WHERE rollout = ?`, rollout)
	if err != nil {
		return nil, classify("read reviews", err)
	}
	defer rows.Close()
	all := map[int][]byte{}
	for rows.Next() {
		var ordinal int
		var doc []byte
		if err := rows.Scan(&ordinal, &doc); err != nil {
			return nil, classify("read reviews", err)
		}
		all[ordinal] = doc
	}
	return all, classify("read reviews", rows.Err())
}

// Event is one event of a rollout that is not a call.
type Event struct {
	Event int64
	Doc   []byte
}

// AppendEvent writes an event. ErrExists where its number is taken.
func (s *Store) AppendEvent(ctx context.Context, rollout string, e Event) error {
	return s.put(ctx, "append an event", `INSERT INTO events (rollout, event, doc) VALUES (?, ?, ?)`, rollout, e.Event, e.Doc)
}

// Events gives the events of a rollout that are not calls and come after number after, by number.
func (s *Store) Events(ctx context.Context, rollout string, after int64) ([]Event, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT event, doc FROM events WHERE rollout = ? AND event > ? ORDER BY event`, rollout, after)
	if err != nil {
		return nil, classify("read events", err)
	}
	defer rows.Close()
	var all []Event
	for rows.Next() {
		var e Event
		if err := rows.Scan(&e.Event, &e.Doc); err != nil {
			return nil, classify("read events", err)
		}
		all = append(all, e)
	}
	return all, classify("read events", rows.Err())
}

// PutImage keeps what is known of a prepared image under key.
func (s *Store) PutImage(ctx context.Context, key string, doc []byte) error {
	return s.put(ctx, "write an image", `INSERT INTO images (key, doc) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET doc = excluded.doc`, key, doc)
}

// Image gives what PutImage kept. ErrNotFound where there is nothing.
func (s *Store) Image(ctx context.Context, key string) ([]byte, error) {
	return s.doc(ctx, "read an image", `SELECT doc FROM images WHERE key = ?`, key)
}

// SetMeta keeps a value of the data folder's own under name.
func (s *Store) SetMeta(ctx context.Context, name string, value []byte) error {
	return s.put(ctx, "write meta", `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
}

// Meta gives what SetMeta kept. ErrNotFound where there is nothing.
func (s *Store) Meta(ctx context.Context, name string) ([]byte, error) {
	return s.doc(ctx, "read meta", `SELECT value FROM meta WHERE name = ?`, name)
}

func (s *Store) put(ctx context.Context, what, text string, args ...any) error {
	for i, a := range args {
		if b, ok := a.([]byte); ok && b == nil {
			args[i] = []byte{} // the driver writes nil as NULL, and an empty document is a document
		}
	}
	_, err := s.write.ExecContext(context.WithoutCancel(ctx), text, args...)
	return classify(what, err)
}

func (s *Store) doc(ctx context.Context, what, text string, args ...any) ([]byte, error) {
	var doc []byte
	err := s.read.QueryRowContext(ctx, text, args...).Scan(&doc)
	return doc, found(what, err)
}

func found(what string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return classify(what, err)
}
