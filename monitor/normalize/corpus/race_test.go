//go:build race

package corpus_test

// everyRow is how many rows stand for one: the race detector makes the corpora ten times slower.
const everyRow = 20
