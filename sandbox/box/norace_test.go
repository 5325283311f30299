//go:build !race

package box_test

const raced = false
