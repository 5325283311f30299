// Package sets reads the task sets that others publish: rows of JSONL, JSON and parquet files, and
// folders. Each set has a file of its own here that turns one row, or one folder, into a native task;
// from there on all tasks are alike.
//
// How. A row is read (package rows' file knows nothing of sets), recognised by its fields, and made a
// draft: a tasks.Task and the files that it names. The draft is written to a folder whose name
// follows from the row's content, and loaded as a native task, so that one checker holds every task to
// the same rules and one digest pins it.
//
// One bad row never ends a run: it is a tasks.Problem with file, row and field, and the others load.
// What a row holds was written by strangers: names of files in it are never used as paths.
package sets
