package replay

import "strings"

// maxDiffLines bounds the lines that are compared one by one; the table grows with their product.
const maxDiffLines = 1000

// Diff gives the lines that differ: "-" recorded, "+" shown, " " for one line around each. Empty where
// both are the same. It follows a longest common subsequence.
func Diff(recorded, shown string) string {
	if recorded == shown {
		return ""
	}
	a, b := strings.Split(recorded, "\n"), strings.Split(shown, "\n")
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out []string
	if start > 0 {
		out = append(out, " "+a[start-1])
	}
	out = append(out, middle(a[start:len(a)-end], b[start:len(b)-end])...)
	if end > 0 && (end > 1 || a[len(a)-1] != "") { // the end of the last line says nothing
		out = append(out, " "+a[len(a)-end])
	}
	return strings.Join(out, "\n") + "\n"
}

// middle compares what is left between equal ends.
func middle(a, b []string) []string {
	var out []string
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		for _, l := range a {
			out = append(out, "-"+l)
		}
		for _, l := range b {
			out = append(out, "+"+l)
		}
		return out
	}
	common := make([][]int, len(a)+1) // lengths of common subsequences of the rests
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}
