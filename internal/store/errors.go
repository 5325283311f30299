package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Errors that callers branch on, wrapped with what happened and what to do.
var (
	// ErrFull says that the disk of the data folder is full. Nothing of the write was kept, and
	// nothing recorded before it is lost: the same write can be made again once there is room.
	ErrFull = errors.New("the data folder's disk is full")
	// ErrLocked says that another server works in the data folder.
	ErrLocked = errors.New("the data folder is in use")
	// ErrCorrupt says that the database is damaged or is not ours.
	ErrCorrupt = errors.New("the database is damaged or is not a Proctor store")
	// ErrSchema says that the database was made by a newer Proctor.
	ErrSchema = errors.New("the database has an unknown schema version")
	// ErrNotFound says that there is no such row.
	ErrNotFound = errors.New("no such row")
	// ErrExists says that the row's key is taken.
	ErrExists = errors.New("the key is taken")
)

// classify wraps err with the sentinel that its SQLite or system code stands for.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	if sentinel := sentinelOf(err); sentinel != nil {
		return fmt.Errorf("store: %s: %w (%w)", what, sentinel, err)
	}
	return fmt.Errorf("store: %s: %w", what, err)
}

func sentinelOf(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return ErrFull
	}
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return nil
	}
	switch se.Code() {
	// A log that cannot be extended is reported as a failed write, a failed shared-memory
	// resize, or plainly as full, by which file met the end of the disk first.
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE,
		sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_FSYNC:
		return ErrFull
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return ErrExists
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ErrCorrupt
	}
	return nil
}
