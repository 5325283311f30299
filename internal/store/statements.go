package store

import (
	"context"
	"database/sql"
	"fmt"
)

// statements are the prepared statements of the paths that every tool call takes, and their text.
// The rest are rare enough to be prepared by database/sql as they come.
type statements struct {
	intent, outcome *sql.Stmt // on the writer
	modelCall       *sql.Stmt // on the writer
	byKey, one      *sql.Stmt // on the readers
}

const (
	intentSQL  = `INSERT INTO intents (id, principal, key, fingerprint, box_id, box_command, doc) VALUES (?, ?, ?, ?, ?, ?, ?)`
	outcomeSQL = `INSERT INTO outcomes (id, event, interrupted, cwd, doc) VALUES (?, ?, ?, ?, ?)`
	modelSQL   = `INSERT INTO model_calls (id, key, request, doc) VALUES (?, ?, ?, ?)`
	callSQL    = `SELECT i.id, i.principal, i.key, i.fingerprint, i.box_id, i.box_command, i.doc,
		o.event, coalesce(o.interrupted, 0), coalesce(o.cwd, ''), o.doc
		FROM intents i LEFT JOIN outcomes o ON o.id = i.id `
)

func (st *statements) prepare(ctx context.Context, write, read *sql.DB) error {
	for _, p := range []struct {
		to   **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&st.intent, write, intentSQL},
		{&st.outcome, write, outcomeSQL},
		{&st.modelCall, write, modelSQL},
		{&st.byKey, read, callSQL + `WHERE i.id BETWEEN ? AND ? AND i.principal = ? AND i.key = ? AND i.key <> ''`},
		{&st.one, read, callSQL + `WHERE i.id = ?`},
	} {
		stmt, err := p.db.PrepareContext(ctx, p.text)
		if err != nil {
			return fmt.Errorf("%s: %w", p.text, err)
		}
		*p.to = stmt
	}
	return nil
}

func (st *statements) close() {
	for _, stmt := range []*sql.Stmt{st.intent, st.outcome, st.modelCall, st.byKey, st.one} {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
}
