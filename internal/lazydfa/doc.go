// Package lazydfa says whether a regular expression matches a text: a deterministic automaton, built as texts are read.
//
// Why: package regexp follows every live thread at every byte, so that a long alternation over a long
// file costs milliseconds: 20 to 200 ns a byte. Whether a text matches at all, which is all that a
// condition asks, a deterministic automaton answers with one table look-up a byte, whatever the
// expression.
//
// How: a state is the set of threads of the compiled program after the last rune, not yet followed
// through what consumes nothing, with the kind of that rune; ^, $ and \b are decided when the next rune
// is known (Thompson's construction, done lazily, as RE2 does it). Runes fall into classes that no
// instruction tells apart, and kinds that the expression does not ask about count as one. A state's
// successors are found when first asked for and kept, for every later text of every rollout, in one table
// of numbers: what a scan reads of it has to fit into the processor's nearest cache.
//
// Guarantee: Match says what regexp.MatchString says, invalid UTF-8 included (a fuzz target and the corpora
// hold it to that), or that it does not know: an expression with too many classes, or a text that
// makes more states than fit. The caller then asks regexp. The memory of one automaton is bounded by
// maxStateBytes, whatever texts an adversary sends.
package lazydfa
