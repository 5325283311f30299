package grading

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"math/big"
	"path"
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
	mustPass []string // names of test functions, unlike any other
	mustFail []string
	planted  []string // names of must-fail tests in the expected tests' own files
	alone    bool     // no other sentinels run beside those
	addopts  string   // PYTEST_ADDOPTS, so that the file is run and its failures are summed up
}

// newSentinels makes sentinels for a grader whose command or script, text, runs pytest and reports by
// test; none for all others.
//
// present are the files of the working folder, hidden tests included.
func newSentinels(g *tasks.Grader, text string, present []string) (sentinels, error) {
	_, isLog := logParser(g.Report)
	if (g.Report != "junit" && g.Report != "pytest-json" && !isLog) || !runsPytest(text) {
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
	code := strings.NewReplacer(
		"@PASS@", names[0], "@FAIL@", names[1], "@RAISE@", names[2], "@PROBE@", names[3],
		"@A@", fmt.Sprint(a), "@B@", fmt.Sprint(b), "@SUM@", fmt.Sprint(a+b), "@WRONG@", fmt.Sprint(a*b+a),
	).Replace(pytestSentinel)
	s := sentinels{file: path.Join(sentinelDir(g, present), "test_"+names[4]+".py"), content: []byte(code), addopts: "-rfE"}
	s.mustPass = []string{"test_" + names[0], "test_" + names[3]}
	s.mustFail = []string{"test_" + names[1], "test_" + names[2]}
	if namesFiles(text) {
		s.addopts += " " + s.file
	}
	return s, nil
}

// sentinelDir is the folder of the expected tests: the one that most of them share. Ids that are
// relative to a folder deeper in the tree (a pytest.ini lies there) are looked up by their ends.
func sentinelDir(g *tasks.Grader, present []string) string {
	count, best := map[string]int{}, ""
	for _, id := range expectedIDs(g) {
		if file := testFile(id); file != "" {
			count[file]++
			if n := count[file]; n > count[best] || (n == count[best] && file < best) {
				best = file
			}
		}
	}
	found := ""
	for _, name := range present {
		if name == best {
			return path.Dir(best)
		}
		if best != "" && strings.HasSuffix(name, "/"+best) && (found == "" || len(name) < len(found)) {
			found = name
		}
	}
	if found != "" {
		return path.Dir(found)
	}
	return path.Dir(best)
}

// summaryExpected reports whether the output of a command must hold pytest's short summary of
// failures: nothing in the command turns it off or leads it elsewhere.
func summaryExpected(command string) bool {
	if !singleCommand(command) || strings.ContainsAny(command, "<>") {
		return false
	}
	words := strings.Fields(command)
	for i, word := range words {
		switch {
		case word == "--no-summary" || strings.HasSuffix(word, "no:terminal"):
			return false
		case strings.HasPrefix(word, "-r"):
			chars := word[2:]
			if chars == "" && i+1 < len(words) {
				chars = words[i+1]
			}
			if strings.Contains(chars, "N") || !strings.ContainsAny(chars, "faA") {
				return false
			}
		}
	}
	return true
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
