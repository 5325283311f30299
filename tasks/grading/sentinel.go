package grading

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"math/big"
	"path"
	"sort"
	"strings"

	"proctor/tasks"
)

//go:embed sentinels/pytest.py
var pytestSentinel string

// sentinels are tests of ours that run in the same process as the hidden ones, in a file whose name,
// like theirs, is drawn for this one run. What must fail proves that the report can say so; what must
// pass looks whether the runner's own functions are still its own.
type sentinels struct {
	file     string // relative to the working folder; "" where the runner takes none
	content  []byte
	mustPass []string // test ids
	mustFail []string
	addopts  string // what to add to PYTEST_ADDOPTS so that the file is run
}

// newSentinels makes sentinels for a grader whose command runs pytest and reports by test; none for
// all others.
func newSentinels(g *tasks.Grader) (sentinels, error) {
	if g.Report != "junit" || !runsPytest(g.Command) {
		return sentinels{}, nil
	}
	names, err := drawNames(5)
	if err != nil {
		return sentinels{}, err
	}
	a, err := draw(900)
	if err != nil {
		return sentinels{}, err
	}
	b, err := draw(900)
	if err != nil {
		return sentinels{}, err
	}
	a, b = a+10, b+10
	text := strings.NewReplacer(
		"@PASS@", names[0], "@FAIL@", names[1], "@RAISE@", names[2], "@PROBE@", names[3],
		"@A@", fmt.Sprint(a), "@B@", fmt.Sprint(b), "@SUM@", fmt.Sprint(a+b), "@WRONG@", fmt.Sprint(a*b+a),
	).Replace(pytestSentinel)
	s := sentinels{file: path.Join(sentinelDir(g), "test_"+names[4]+".py"), content: []byte(text)}
	id := func(n int) string { return s.file + "::test_" + names[n] }
	s.mustPass = []string{id(0), id(3)}
	s.mustFail = []string{id(1), id(2)}
	if namesFiles(g.Command) {
		s.addopts = s.file
	}
	return s, nil
}

// sentinelDir is the folder of the expected tests: the one that most of them share.
func sentinelDir(g *tasks.Grader) string {
	count := map[string]int{}
	for _, id := range expectedIDs(g) {
		if file := testFile(id); file != "" {
			count[path.Dir(file)]++
		}
	}
	dirs := make([]string, 0, len(count))
	for dir := range count {
		dirs = append(dirs, dir)
	}
	sort.Slice(dirs, func(i, j int) bool {
		if count[dirs[i]] != count[dirs[j]] {
			return count[dirs[i]] > count[dirs[j]]
		}
		return dirs[i] < dirs[j]
	})
	if len(dirs) == 0 {
		return "."
	}
	return dirs[0]
}

// runsPytest reports whether a test command starts pytest.
func runsPytest(command string) bool {
	for _, word := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()", r) }) {
		if base := path.Base(word); base == "pytest" || base == "py.test" || base == "pytest-3" {
			return true
		}
	}
	return false
}

// namesFiles reports whether a command names test files or ids, so that a further file in their
// folder would not be run by itself.
func namesFiles(command string) bool {
	for _, word := range strings.Fields(command) {
		if strings.HasSuffix(strings.Trim(word, `"'`), ".py") || strings.Contains(word, ".py::") {
			return true
		}
	}
	return false
}

// words make names that a project's own tests could have.
var words = strings.Fields(`order empty bounds single nested reverse large small mixed repeat unicode float
	negative copy default edges stable update lookup limits prefix suffix format default_value round_trip
	ascending duplicates precision wide narrow input output boundary sequence first last middle`)

// drawNames gives n different names, each of two or three words.
func drawNames(n int) ([]string, error) {
	seen := map[string]bool{}
	var names []string
	for len(names) < n {
		var parts []string
		for range 3 {
			i, err := draw(len(words))
			if err != nil {
				return nil, err
			}
			parts = append(parts, words[i])
		}
		name := strings.Join(parts, "_")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// draw gives a random number below n.
func draw(n int) (int, error) {
	i, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		return 0, err
	}
	return int(i.Int64()), nil
}
