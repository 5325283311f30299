//go:build race

package box_test

// raced: the race detector's own memory is part of the agent's.
const raced = true
