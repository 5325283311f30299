// Package store keeps rollouts, their calls and all that belongs to them in one SQLite database in
// the data folder.
//
// Durability: the journal is a write-ahead log and synchronous is NORMAL. Each append is in the
// kernel's page cache when it returns, so a SIGKILL of the server at any moment loses nothing. A
// power failure or a kernel panic may lose the appends since the last checkpoint (those of
// CheckpointEvery) but never corrupts what came before them: the
// documented behaviour of WAL with synchronous=NORMAL (sqlite.org/pragma.html#pragma_synchronous).
// FULL would add an fsync, 1 to 10 ms on common disks, to each half of each tool call, which is
// more than the call itself costs; and after a power failure the sandboxes are gone as well, so
// that the calls it would have saved belong to rollouts that cannot go on.
//
// One connection writes, several read. The data folder is locked: a second server on it is refused.
//
// The tables are described in migrations/*.sql. Documents (column doc) are JSON whose shapes belong
// to the callers; the store reads only its columns.
//
// This package knows nothing of rollouts, tasks or sandboxes but rows.
package store
