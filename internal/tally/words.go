package tally

import "fmt"

// Words gives a number with what is counted: "1 task", "2 tasks". The plural of what has an s.
func Words(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
