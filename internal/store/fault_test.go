package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// fill appends intents of 8 KiB until one fails, and gives the number written and the failure.
func fill(t *testing.T, s *Store) (int, error) {
	t.Helper()
	big := bytes.Repeat([]byte("x"), 8<<10)
	for i := range 100_000 {
		c := intent(i+1, "")
		c.Intent = big
		if err := s.AppendIntent(context.Background(), "r", c); err != nil {
			return i, err
		}
	}
	t.Fatal("the store never filled")
	return 0, nil
}

func TestAFullStoreSaysSoAndKeepsWhatItHas(t *testing.T) {
	s := rollout(t, open(t, t.TempDir(), Options{MaxPages: 200}), "r")
	n, err := fill(t, s)
	checkFull(t, s, n, err)
}

// TestAFullDisk fills a real file system. It needs root for the mount.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("mount a small tmpfs: %v", err)
		}
		t.Skipf("NOT TESTED: a full disk needs root to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := rollout(t, open(t, dir, Options{}), "r")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := fill(t, s)
	checkFull(t, s, n, err)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendIntent(context.Background(), "r", intent(n+1, "")); err != nil {
		t.Errorf("the same append once there is room: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, Options{})
	if calls, err := again.Calls(context.Background(), "r"); err != nil || len(calls) != n+1 {
		t.Errorf("%d calls after opening again, %v; want %d", len(calls), err, n+1)
	}
}

func checkFull(t *testing.T, s *Store, n int, err error) {
	t.Helper()
	if !errors.Is(err, ErrFull) {
		t.Fatalf("append %d: %v, want ErrFull", n+1, err)
	}
	calls, err := s.Calls(context.Background(), "r")
	if err != nil || len(calls) != n || n == 0 {
		t.Errorf("%d calls are readable, %v; want the %d that were written", len(calls), err, n)
	}
}

func TestDatabasesThatAreNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want error
		says string
	}{
		"text":              {func(t *testing.T, p string) { write(t, p, strings.Repeat("not a database\n", 1000)) }, ErrCorrupt, "proctor.db"},
		"another program's": {func(t *testing.T, p string) { run(t, p, "PRAGMA application_id = 7; CREATE TABLE x (y)") }, ErrCorrupt, "--data"},
		"an unmarked one":   {func(t *testing.T, p string) { run(t, p, "CREATE TABLE x (y)") }, ErrCorrupt, "--data"},
		"a newer one": {func(t *testing.T, p string) {
			run(t, p, "PRAGMA application_id = 1349673844; PRAGMA user_version = 99; CREATE TABLE x (y)")
		}, ErrSchema, "99"},
		"damaged": {func(t *testing.T, p string) {
			s := open(t, filepath.Dir(p), Options{})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(p, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(bytes.Repeat([]byte{0xee}, 4000), 100); err != nil {
				t.Fatal(err)
			}
		}, ErrCorrupt, "proctor.db"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, filepath.Join(dir, "proctor.db"))
			_, err := Open(context.Background(), dir, Options{})
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not name %q", err, c.says)
			}
			if _, err := lockFolder(dir); err != nil {
				t.Errorf("a failed Open keeps the folder locked: %v", err)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := Open(context.Background(), filepath.Join(file, "data"), Options{}); err == nil || !strings.Contains(err.Error(), "data folder") {
		t.Errorf("%v, want an error about the data folder", err)
	}
}

func TestMigrationsRunFromEveryVersion(t *testing.T) {
	ctx := context.Background()
	all, err := migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	for from := range len(all) + 1 {
		dir := t.TempDir()
		db, err := sql.Open("sqlite", filepath.Join(dir, "proctor.db"))
		if err != nil {
			t.Fatal(err)
		}
		if err := migrate(ctx, db, all[:from]); err != nil {
			t.Fatalf("to version %d: %v", from, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, Options{})
		var version int
		if err := s.write.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version != len(all) {
			t.Errorf("from version %d: now %d, %v; want %d", from, version, err, len(all))
		}
		if err := rollout(t, s, "r").AppendIntent(ctx, "r", intent(1, "")); err != nil {
			t.Errorf("from version %d: %v", from, err)
		}
	}
}

func TestAFailedMigrationChangesNothing(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	steps := []migration{{1, "1", "CREATE TABLE a (x)"}, {2, "2", "CREATE TABLE b (x); CREATE TABLE a (x)"}}
	if err := migrate(context.Background(), db, steps); err == nil {
		t.Fatal("a step that fails gave no error")
	}
	var version, tables int
	_ = db.QueryRow("PRAGMA user_version").Scan(&version)
	_ = db.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables)
	if version != 1 || tables != 1 {
		t.Errorf("version %d with %d tables, want 1 and 1", version, tables)
	}
}

func TestMigrationNumbersHaveNoGap(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"a gap":     {"migrations/0001_a.sql": {}, "migrations/0003_b.sql": {}},
		"no number": {"migrations/init.sql": {}},
		"twice":     {"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}},
	} {
		if _, err := migrations(files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
