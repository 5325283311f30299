// Package pool keeps sandboxes ready before they are asked for. Its Engine wraps another one and is
// itself one: Create hands out a waiting sandbox of the same kind where there is one, and otherwise
// makes one as the wrapped engine does.
//
// Vocabulary:
//
//   - A kind is all that sandboxes must have in common to stand for each other: the image's digest and
//     every field of a Spec but the name. What a name, a label, a hostname or a network of one's own makes
//     unique is never pooled.
//   - A spare is a sandbox that waits; a claim takes one. A claimed sandbox is the engine's own session:
//     nothing stands between it and its calls.
//   - A make is a sandbox that is being made, for a caller that waits or for stock. Whatever makes give
//     goes to the caller that has waited longest, whoever it was begun for, so that no late comer
//     overtakes.
//
// How many spares a kind has follows its demand (demand.go). Stock is made only while no caller waits for
// a make, and by so many at once as the engine bears (stock.go).
//
// What a crash leaves needs no care of its own: a rollout's record holds the id of its sandbox from the
// moment it exists, spares are in no record, and a server that starts removes the sandboxes of its own
// label that no rollout holds. The label with a sandbox's name cannot be changed later, so a claimed spare
// keeps its own on the host ("spare"); List gives the name under which it was claimed.
package pool
