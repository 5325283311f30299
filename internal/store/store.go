package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// CheckpointEvery is how often the write-ahead log is folded into the database while there are
// writes.
const CheckpointEvery = 5 * time.Second

// readers is how many connections read at once; reads are short and the machine has few cores.
const readers = 4

// Options tune a Store. The zero value is right for a server.
type Options struct {
	// MaxPages bounds the database's size in pages of 4 KiB; 0 means no bound. A write past it
	// gives ErrFull. For tests of a full disk.
	MaxPages int
}

// Store is an open database. Safe for concurrent use. Every write is durable, as the package
// comment defines it, when it returns.
type Store struct {
	dir   string
	lock  *folderLock
	write *sql.DB // one connection
	read  *sql.DB
	owner string

	stmts  statements
	models together // appends of model calls
	seqs   sync.Map // rollout id -> seq, of those that were asked for

	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// Open opens the store in the folder dir, making both where they are missing. Errors: ErrLocked,
// ErrCorrupt, ErrSchema, ErrFull, or what the file system says.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, classify("make the data folder", err)
	}
	s := &Store{dir: dir, stop: make(chan struct{})}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := s.open(ctx, opts); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	s.done.Add(1)
	go s.checkpoints()
	return s, nil
}

func (s *Store) open(ctx context.Context, opts Options) error {
	path := filepath.Join(s.dir, "proctor.db")
	pragmas := []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "temp_store(MEMORY)",
		"cache_size(-16384)", "foreign_keys(ON)", "wal_autocheckpoint(0)",
	}
	if opts.MaxPages > 0 {
		pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", opts.MaxPages))
	}
	var err error
	if s.write, err = sql.Open("sqlite", dsn(path, pragmas)); err != nil {
		return classify("open "+path, err)
	}
	s.write.SetMaxOpenConns(1)
	s.write.SetConnMaxLifetime(0)
	all, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	if err := migrate(ctx, s.write, all); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.read, err = sql.Open("sqlite", dsn(path, []string{"busy_timeout(10000)", "query_only(ON)", "cache_size(-4096)"})); err != nil {
		return classify("open "+path, err)
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	if err := s.stmts.prepare(ctx, s.write, s.read); err != nil {
		return classify("prepare statements", err)
	}
	s.owner, err = s.ownerID(ctx)
	return err
}

func dsn(path string, pragmas []string) string {
	query := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// Owner is the data folder's own random id; sandboxes are labelled with it, so that only those of
// this folder are ever reaped.
func (s *Store) Owner() string { return s.owner }

// Dir is the data folder.
func (s *Store) Dir() string { return s.dir }

func (s *Store) ownerID(ctx context.Context) (string, error) {
	if have, err := s.Meta(ctx, "owner"); err == nil {
		return string(have), nil
	} else if !errors.Is(err, ErrNotFound) {
		return "", err
	}
	raw := make([]byte, 8)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	id := hex.EncodeToString(raw)
	return id, s.SetMeta(ctx, "owner", []byte(id))
}

// checkpoints folds the log into the database beside the writers, so that no call ever waits for
// the fsync that a checkpoint makes.
func (s *Store) checkpoints() {
	defer s.done.Done()
	tick := time.NewTicker(CheckpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			_ = s.checkpoint("PASSIVE") // what it could not fold, the next one does
		}
	}
}

func (s *Store) checkpoint(kind string) error {
	db, err := sql.Open("sqlite", dsn(filepath.Join(s.dir, "proctor.db"), []string{"busy_timeout(100)"}))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec("PRAGMA wal_checkpoint(" + kind + ")")
	return err
}

// Close folds the log and frees the folder. Writes after it fail.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		close(s.stop)
		s.done.Wait()
		_ = s.checkpoint("TRUNCATE")
		err = s.closeFiles()
	})
	return err
}

func (s *Store) closeFiles() error {
	var errs []error
	s.stmts.close()
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}
