//go:build !race

package corpus_test

const everyRow = 1
