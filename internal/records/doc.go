// Package records keeps the token-exact records of rollouts: the model calls that the gateway saw, or
// the segments that a trainer uploaded in their place, never both.
//
// A model call is stored as what it adds to an earlier one (delta.go): its prompt's ids and messages
// mostly repeat those of the call before, and a conversation of n turns would else cost n² of its
// text. The call that it goes on from is found by hashes of prefixes, so that an open rollout holds
// some hundred bytes a call in memory and no token. Decoding gives back exactly what was appended.
package records
