// Package gitobj reads git repositories without git: loose objects, packs with deltas and their
// indexes, refs, reflogs and the index, and writes the little that a scrubbed repository needs.
//
// Why not git itself. A repository that came out of a sandbox was written by an adversary. Its
// configuration can run programs, its replace refs and grafts can answer with other objects than
// were asked for, its fsmonitor and filters run on a mere status. This reader knows none of these:
// it sees the object store as it is, which is just what a leak is judged by.
//
// How. A Repo is opened over one git directory that lies on the host, through os.Root, so that no
// link leads out. Objects are found by id in packs first, then loose; every commit, tree and tag is
// checked against its id when it is read.
//
// Guarantee: all sizes are bounded, nothing panics on any bytes (the parsers are fuzzed), and what
// cannot be understood is an error, never skipped. A caller that must be sure fails on any error.
//
// Not read: SHA-256 repositories and reftables, which are errors; multi-pack indexes, commit graphs
// and bitmaps, which only repeat what packs say.
package gitobj
