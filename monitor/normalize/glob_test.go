package normalize

import "testing"

// A plain test path covers what its pattern would match.
func TestPlainTestPathsAreLikePatterns(t *testing.T) {
	for _, p := range []string{"tests", "tests/unit/test_a.py", "a.b/c+d", "./tests/"} {
		test, ok := newTestPath(p)
		if !ok || test.pattern != nil {
			t.Fatalf("%q: %+v", p, test)
		}
		pattern := testPattern(test.plain)
		for _, rel := range []string{"", "tests", "tests/", "tests/x.py", "tests2/x.py", "tests/unit/test_a.py", "tests/unit/test_a.pyc", "tests/unit/test_a.py/x",
			"a.b/c+d", "axb/c+d", "x/tests", "tests/new\nline", "tests\n"} {
			if got, want := test.covers(rel), pattern.MatchString(rel); got != want {
				t.Errorf("%q covers %q: %t, the pattern says %t", p, rel, got, want)
			}
		}
	}
}
