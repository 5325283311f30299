// Package trajectory knows the form of a rollout's record as a document, proctor.trajectory/1, and
// what must hold in every one of them. docs/trajectory.md describes the form.
//
// It reads documents, whoever wrote them, and imports nothing of ours: a record from an older
// server or a copy that somebody edited is held against the same rules as a fresh one.
package trajectory
