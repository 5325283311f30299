package normalize

import (
	"context"
	"slices"
	"testing"

	"proctor/rules"
)

// A copy of something hidden is hidden wherever it lies, and however it came there.
func TestCopiesOfHiddenThings(t *testing.T) {
	task := Task{Workdir: "/w", Vars: rules.Vars{"hidden_paths": {"/w/.eval", "/tests"}}}
	bash := func(s string) Call { return Call{Tool: "bash", Command: s} }
	for name, tc := range map[string]struct {
		setup []Call
		call  Call
		want  bool
	}{
		"redirected":        {[]Call{bash("cat /tests/test_a.py > /tmp/n.txt")}, bash("head /tmp/n.txt"), true},
		"at the pipe's end": {[]Call{bash("cat .eval/a | gzip -c > /tmp/n.gz")}, bash("zcat /tmp/n.gz"), true},
		"packed, unpacked":  {[]Call{bash("tar -C / -cf - w/.eval tests | tar -C /tmp/x -xf -")}, Call{Tool: "view", Path: "/tmp/x/tests/test_a.py"}, true},
		"by a script":       {[]Call{bash(`python3 -c "open('/tmp/o','w').write(open('/tests/a').read())"`)}, bash("cat /tmp/o"), true},
		"embedded":          {[]Call{bash("cp -r /w/.eval /w/r/testlink")}, Call{Tool: "create", Path: "/w/r/d.go", File: "package r\n\n//go:embed all:testlink\nvar d embed.FS\n"}, true},
		"another file":      {[]Call{bash("cat a.py | gzip -c > /tmp/n.gz")}, bash("zcat /tmp/n.gz"), false},
		"unpacked elsewhere": {[]Call{bash("tar -C / -cf - w/src | tar -C /tmp/x -xf -")},
			Call{Tool: "view", Path: "/tmp/x/w/src/a.py"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := New(task, nil)
			for _, c := range tc.setup {
				n.Event(context.Background(), c)
				n.Observe(c, true, "")
			}
			if got := touchesHidden(n.Event(context.Background(), tc.call)); got != tc.want {
				t.Errorf("hidden: %v, want %v", got, tc.want)
			}
		})
	}
}

func touchesHidden(ev rules.Event) bool {
	return slices.ContainsFunc(ev.Commands, func(c rules.Command) bool { return len(c.Hidden) > 0 }) ||
		slices.ContainsFunc(ev.Scripts, func(s rules.Script) bool { return len(s.Hidden) > 0 }) ||
		slices.ContainsFunc(ev.Files, func(f rules.File) bool { return f.Hidden })
}

// A script may work out where it stands, and ask for a name by a part of it.
func TestScriptsFindHiddenThings(t *testing.T) {
	task := Task{Workdir: "/w/p", Vars: rules.Vars{"hidden_paths": {"/w/.labels"}}}
	py, js, grv := "/w/p/a.py", "/w/p/a.js", "/w/p/a.groovy"
	for name, tc := range map[string]struct {
		path, code     string
		hidden, covers bool
	}{
		"beside the script's folder": {py, `print(open(os.path.join(os.path.dirname(__file__), "..", ".labels", "y")).read())`, true, false},
		"parents":                    {py, `print((Path(__file__).resolve().parents[1] / ".labels" / "y").read_text())`, true, false},
		"a pattern from a root":      {py, "root = Path.cwd().parent\nfor p in root.glob('.lab*/*.csv'): print(p.read_text())\n", true, true},
		"by its start":               {py, "for d in os.listdir('..'):\n    if d.startswith('.la'): print(d)\n", true, true},
		"by its end":                 {grv, "home.list().findAll { it.startsWith('.') && it.endsWith('labels') }\n", true, false},
		"node":                       {js, "fs.readFileSync(path.resolve(__dirname, '..', '.labels', 'y'))", true, false},
		"a walk above":               {py, "for d, _, f in os.walk(os.path.join(os.path.dirname(__file__), '..', '..')): pass\n", false, true},
		"its own data":               {py, `print(open(os.path.join(os.path.dirname(__file__), "data", "y")).read())`, false, false},
		"a column called so":         {py, "df.columns.str.startswith('label')\n", false, false},
		"its own tree":               {py, "for d, _, f in os.walk(os.path.dirname(__file__)): pass\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ev := New(task, nil).Event(context.Background(), Call{Tool: "create", Path: tc.path, File: tc.code})
			covers := slices.ContainsFunc(ev.Scripts, func(s rules.Script) bool { return len(s.Covers) > 0 })
			if got := touchesHidden(ev); got != tc.hidden || covers != tc.covers {
				t.Errorf("hidden %v, covers %v; want %v, %v (%+v)", got, covers, tc.hidden, tc.covers, ev.Scripts)
			}
		})
	}
}

func TestPlainGlob(t *testing.T) {
	for in, want := range map[string]string{
		"/pr[o]c/[0-9]*/cmdl*":          "/proc/[0-9]*/cmdline",
		"/w/.git/pack?d-r*s":            "/w/.git/packed-refs",
		"/w/.g*t/r*fs/rem*/*/main":      "/w/.git/refs/remotes/*/main",
		"/root/.cargo/reg*/src/*/a-1.*": "/root/.cargo/registry/src/*/a-1.*",
		"/v*r/run/dock*.sock":           "/var/run/docker.sock",
		"/w/src/*.py":                   "/w/src/*.py",
		"/w/*":                          "/w/*",
	} {
		if got := plainGlob(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
