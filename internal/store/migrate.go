package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks a database as ours ("Prct").
const applicationID = 0x50726374

type migration struct {
	version int
	name    string
	text    string
}

// migrations gives the numbered scripts of files in order. The numbers start at 1 and have no gap.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var all []migration
	for i, name := range names {
		number, _, ok := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version != i+1 {
			return nil, fmt.Errorf("store: migration %s: want number %04d", name, i+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		all = append(all, migration{version: version, name: name, text: string(text)})
	}
	return all, nil
}

// migrate brings db from whatever version it has to the newest, one transaction a step.
func migrate(ctx context.Context, db *sql.DB, all []migration) error {
	var have, app int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return classify("read the schema version", err)
	}
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return classify("read the application id", err)
	}
	if err := checkOrigin(ctx, db, have, app); err != nil {
		return err
	}
	if newest := len(all); have > newest {
		return fmt.Errorf("store: %w: it is %d and this program knows up to %d; use the newer program, or another folder with --data", ErrSchema, have, newest)
	}
	for _, m := range all[have:] {
		if err := step(ctx, db, m); err != nil {
			return classify("migrate to "+path.Base(m.name), err)
		}
	}
	return nil
}

// checkOrigin refuses a database that some other program made.
func checkOrigin(ctx context.Context, db *sql.DB, version, app int) error {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return classify("read the schema", err)
	}
	if app == applicationID || (app == 0 && version == 0 && tables == 0) {
		return nil
	}
	return fmt.Errorf("store: %w: it has application id %#x, not %#x; move the file away, or use another folder with --data", ErrCorrupt, app, applicationID)
}

func step(ctx context.Context, db *sql.DB, m migration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, m.text); err != nil {
		return err
	}
	pragmas := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, m.version)
	if _, err := tx.ExecContext(ctx, pragmas); err != nil {
		return err
	}
	return tx.Commit()
}
