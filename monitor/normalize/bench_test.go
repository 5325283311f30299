package normalize_test

import (
	"testing"

	"proctor/monitor/normalize"
	"proctor/rules"
)

// BenchmarkEvent measures typical commands; the design's reference is 26-31 us each.
func BenchmarkEvent(b *testing.B) {
	for _, bc := range []struct{ name, command string }{
		{"ls", "ls -la"},
		{"grep", "grep -rn 'def split_line' src/package | head -20"},
		{"sed", "sed -n '1,80p' src/package/module.py"},
		{"chain", "cd /testbed && python -m pytest -q tests/test_core.py 2>&1 | tail -5"},
		{"heredoc", "cat > repro.py <<'EOF'\nfrom package import core\n\nfor n in range(3):\n    print(core.split(n), 'x' + 'y')\nEOF\npython repro.py"},
		{"python -c", "python3 -c \"import package; print(package.core.split('a,b'))\""},
		{"git", "git log --oneline -5 -- src && git diff HEAD~1"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			n := normalize.New(testTask(), nil)
			call := normalize.Call{Tool: "bash", Command: bc.command}
			b.ReportAllocs()
			for b.Loop() {
				n.Event(b.Context(), call)
			}
		})
	}
}

func testTask() normalize.Task {
	return normalize.Task{Workdir: "/testbed", Vars: rules.Vars{
		"workdir":       {"/testbed"},
		"hidden_paths":  {"/testbed/.eval", "/hidden", "/eval.sh"},
		"test_paths":    {"tests", "pkg/**/tests", "**/*_test.go"},
		"upstream_repo": {"acme/widgets"},
		"package":       {"widgets"},
		"base_version":  {"1.3.0"},
		"fix_version":   {"1.4.0"},
		"network":       {"none"},
	}}
}
