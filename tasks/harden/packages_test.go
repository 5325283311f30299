package harden

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	toolBase = "def run(value):\n    return value\n"
	toolFix  = `diff --git a/src/tool/core.py b/src/tool/core.py
--- a/src/tool/core.py
+++ b/src/tool/core.py
@@ -1,2 +1,7 @@
 def run(value):
+    if value is None:
+        raise ValueError(u'value must not be None')
+    limit = compute_limit(value, strict=True)
+    if len(value) > limit:
+        value = truncate_to(value, limit)
     return value
`
	// The fix as a formatter leaves it.
	toolFixed = "def run(value):\n    if value is None:\n        raise ValueError(\"value must not be None\")\n    limit = compute_limit(\n        value, strict=True)\n    if len(value) > limit:\n        value = truncate_to(value, limit)\n    return value\n"
	// The fix in other words.
	toolLater = "def run(value, *, limit=None):\n    return Runner(value, limit).go()\n"
)

func (l *lab) zip(name string, files map[string]string) {
	l.t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for n, text := range files {
		f, err := w.Create(n)
		if err != nil {
			l.t.Fatal(err)
		}
		_, _ = f.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.write(name, b.String())
}

func (l *lab) tarGz(name string, files map[string]string) {
	l.t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for n, text := range files {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: n, Mode: 0o644, Size: int64(len(text))})
		_, _ = w.Write([]byte(text))
	}
	_, _ = w.Close(), z.Close()
	l.write(name, b.String())
}

// copies put copies of the package into an image: gone are the paths that must not be there after
// hardening, kept those that must.
var packageCases = []struct {
	name       string
	put        func(l *lab)
	gone, kept []string
}{
	{"the distribution's own package, with its command", func(l *lab) {
		l.write("usr/lib/python3/dist-packages/tool/core.py", toolLater)
		l.write("usr/lib/python3/dist-packages/tool/__init__.py", "")
		l.write("usr/lib/python3/dist-packages/tool-2.0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: Tool\nVersion: 2.0.1\n\nText\n")
		l.write("usr/lib/python3/dist-packages/toolbox/core.py", "x = 1\n")
		l.write("usr/bin/tool-3", "#!/usr/bin/python3\n")
		l.write("usr/bin/toolbox", "#!/usr/bin/python3\n")
	}, []string{"usr/lib/python3/dist-packages/tool", "usr/lib/python3/dist-packages/tool-2.0.1.dist-info", "usr/bin/tool-3"},
		[]string{"usr/lib/python3/dist-packages/toolbox", "usr/bin/toolbox"}},
	{"vendored by pip, in other words but a later release", func(l *lab) {
		l.write("opt/venv/lib/python3.11/site-packages/pip/_vendor/tool/core.py", toolLater)
		l.write("opt/venv/lib/python3.11/site-packages/pip/_vendor/tool/__version__.py", "__title__ = 'tool'\n__version__ = '2.28.1'\n")
		l.write("opt/venv/lib/python3.11/site-packages/pip/__init__.py", "")
		l.write("opt/venv/lib/python3.11/site-packages/pip-23.0.dist-info/METADATA", "Name: pip\nVersion: 23.0\n")
		l.write("opt/venv/lib/python3.11/site-packages/six.py", "")
		l.write("opt/venv/bin/pip3.11", "")
		l.write("opt/venv/bin/python", "")
	}, []string{"opt/venv/lib/python3.11/site-packages/pip", "opt/venv/lib/python3.11/site-packages/pip-23.0.dist-info", "opt/venv/bin/pip3.11"},
		[]string{"opt/venv/lib/python3.11/site-packages/six.py", "opt/venv/bin/python"}},
	{"vendored in a wheel", func(l *lab) {
		l.zip("usr/share/python-wheels/pip-23.0.1-py3-none-any.whl", map[string]string{"pip/_vendor/tool/core.py": toolFixed})
		l.zip("usr/share/python-wheels/six-1.0-py3-none-any.whl", map[string]string{"six.py": "x"})
	}, []string{"usr/share/python-wheels/pip-23.0.1-py3-none-any.whl"}, []string{"usr/share/python-wheels/six-1.0-py3-none-any.whl"}},
	{"wheels, source archives and packages by name", func(l *lab) {
		l.zip("opt/w/tool-2.0-py3-none-any.whl", nil)
		l.tarGz("srv/tool-3.1.4.tar.gz", nil)
		l.write("var/cache/apt/archives/python3-tool_2.0-1_all.deb", "x")
		l.write("opt/w/tool-1.1-py3-none-any.whl", "x")
		l.write("opt/w/toolbox-2.0-py3-none-any.whl", "x")
	}, []string{"opt/w/tool-2.0-py3-none-any.whl", "srv/tool-3.1.4.tar.gz", "var/cache/apt/archives/python3-tool_2.0-1_all.deb"},
		[]string{"opt/w/tool-1.1-py3-none-any.whl", "opt/w/toolbox-2.0-py3-none-any.whl"}},
	{"a source archive of another name", func(l *lab) {
		l.tarGz("srv/upload.tar.gz", map[string]string{"x/src/tool/core.py": toolFixed})
	}, []string{"srv/upload.tar.gz"}, nil},
	{"the fixed file under another name", func(l *lab) {
		l.write("home/me/notes.py", "# mine\n"+toolFixed)
		l.write("home/me/other.py", toolLater)
	},
		[]string{"home/me/notes.py"}, []string{"home/me/other.py"}},
	{"a module cache", func(l *lab) {
		l.write("go/pkg/mod/code.test/acme/tool@v2.0.0/src/tool/core.py", toolFixed)
		l.write("go/pkg/mod/code.test/acme/tool@v2.0.0/README", "x")
		l.write("go/pkg/mod/code.test/acme/other@v1.0.0/README", "x")
	}, []string{"go/pkg/mod/code.test/acme/tool@v2.0.0"}, []string{"go/pkg/mod/code.test/acme/other@v1.0.0"}},
	{"an untracked build in the workdir", func(l *lab) {
		l.write("w/build/lib/tool/core.py", toolFixed)
		l.write("w/build/lib/tool/old.py", "x")
		l.write("w/build/README", "x")
	}, []string{"w/build/lib/tool/core.py"}, []string{"w/build/README", "w/src/tool/core.py"}},
	{"an install of the start state", func(l *lab) {
		l.write("opt/venv/lib/python3.11/site-packages/tool/core.py", toolBase)
		l.write("opt/venv/lib/python3.11/site-packages/tool-2.0.dev3.dist-info/METADATA", "Name: tool\nVersion: 2.0.dev3\n")
	}, nil, []string{"opt/venv/lib/python3.11/site-packages/tool/core.py", "opt/venv/lib/python3.11/site-packages/tool-2.0.dev3.dist-info/METADATA"}},
	{"an older copy", func(l *lab) {
		l.write("opt/x/site-packages/other/_vendor/tool/core.py", "def run(v):\n    return v\n")
		l.write("opt/x/site-packages/other/_vendor/tool/__init__.py", "__version__ = '0.9.2'\n")
	}, nil, []string{"opt/x/site-packages/other/_vendor/tool/core.py"}},
	{"a clone outside of the folders that builds use", func(l *lab) {
		l.git("w", "branch", "next", "HEAD")
		l.git("w", "checkout", "-q", "next")
		l.commit("w", "src/tool/core.py", toolFixed)
		l.git("w", "checkout", "-q", "main")
		l.git("w", "clone", "-q", "-b", "next", "../w", "../srv/deep/clone")
	}, []string{"srv/deep/clone"}, nil},
	{"a bundle outside of them", func(l *lab) {
		l.git("w", "bundle", "create", "-q", "../backup.dat", "main")
	}, []string{"backup.dat"}, nil},
}

func TestCopiesOfThePackage(t *testing.T) {
	for _, c := range packageCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.commit("w", "src/tool/core.py", toolBase)
			l.commit("w", "README", "x")
			_ = os.Remove(filepath.Join(l.root, "w/.git/COMMIT_EDITMSG"))
			c.put(l)
			task := l.packageTask()
			ctx := context.Background()
			o, err := Run(ctx, l.box, task, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.gone {
				if _, err := os.Lstat(filepath.Join(l.root, name)); err == nil {
					t.Errorf("%s is still there", name)
				}
			}
			for _, name := range c.kept {
				if _, err := os.Lstat(filepath.Join(l.root, name)); err != nil {
					t.Errorf("%s is gone", name)
				}
			}
			if found := len(o.Leaks) > 0; found != (len(c.gone) > 0) {
				t.Errorf("leaks told: %v", o.Leaks)
			}
			m, err := Audit(ctx, l.box, task, o.Repos, o.Gone, t.TempDir())
			if err != nil {
				t.Fatalf("audit: %v", err)
			}
			if err := m.Verify(ctx, l.box); err != nil {
				t.Errorf("verify: %v", err)
			}
			l.comesBack(c.put, o, m)
		})
	}
}

func (l *lab) packageTask() Task {
	task := l.task()
	task.Package, task.BaseVersion, task.Fix = "tool", "2.0", toolFix
	task.Solved = []string{"src/tool/core.py"}
	return task
}

// comesBack puts copies there again: the audit must see them, and each rollout's check those whose
// places it knows.
func (l *lab) comesBack(put func(*lab), o *Outcome, m *Manifest) {
	l.t.Helper()
	if len(o.Gone) == 0 {
		return
	}
	put(l)
	if _, err := Audit(context.Background(), l.box, l.packageTask(), o.Repos, nil, l.t.TempDir()); err == nil {
		l.t.Error("the audit does not see a copy")
	}
	if err := m.Verify(context.Background(), l.box); err == nil {
		l.t.Error("the check of a rollout does not see a copy")
	}
}

// A search without a hardening tells the same.
func TestLookTellsCopies(t *testing.T) {
	l := newLab(t)
	l.commit("w", "src/tool/core.py", toolBase)
	l.zip("opt/w/tool-2.0-py3-none-any.whl", nil)
	o, err := Look(context.Background(), l.box, l.packageTask(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(o.Leaks, func(k Leak) bool { return k.Kind == KindPackage && strings.Contains(k.Text, "release 2.0 of tool") }) {
		t.Errorf("leaks are %v", o.Leaks)
	}
}

// SWE-smith's history holds the answer: after squashing there is one commit, and the tree is as it was.
func TestSquash(t *testing.T) {
	for _, detached := range []bool{false, true} {
		l := newLab(t)
		l.history()
		l.commit("w", "src/f0.py", "the right code\n")
		l.commit("w", "src/f0.py", "a bug\n")
		if detached {
			l.git("w", "checkout", "-q", "--detach")
		}
		tree := l.git("w", "rev-parse", "HEAD^{tree}")
		task := l.task()
		task.Squash = true
		o, err := Run(context.Background(), l.box, task, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Audit(context.Background(), l.box, task, o.Repos, o.Gone, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if got := l.git("w", "log", "--all", "--format=%an %s", "HEAD"); got != "user Initial commit" {
			t.Errorf("the history is %q", got)
		}
		if got := l.git("w", "rev-parse", "HEAD^{tree}"); got != tree {
			t.Error("the tree is another")
		}
		if got := l.git("w", "status", "--porcelain"); got != "" {
			t.Errorf("status is %q", got)
		}
		if got := l.git("w", "tag"); got != "" {
			t.Errorf("tags are left: %q", got)
		}
		l.git("w", "blame", "HEAD", "--", "src/f0.py")
		l.git("w", "fsck", "--strict", "--full")
		l.onlyAncestors(o)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		have, base, fix string
		want            bool
	}{
		{"2.28.1", "2.4", "", true}, {"2.3.9", "2.4", "", false}, {"2.4", "2.4.0", "", true}, {"7.2.1", "7.2", "7.2.0", true}, {"7.1.3", "7.2", "7.1.3", true},
		{"7.1.2", "", "7.1.3", false}, {"x", "1", "", false}, {"1.0", "", "", false}, {"v2.0", "1.9", "", true},
	} {
		if got := (Task{BaseVersion: c.base, FixVersion: c.fix}).newer(c.have); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func FuzzFix(f *testing.F) {
	f.Add(toolFix, toolFixed)
	f.Fuzz(func(t *testing.T, patch, text string) {
		for _, x := range fixOf(patch) {
			near, far := x.heldBy([]byte(text), true), x.heldBy([]byte(text), false)
			if far && !near {
				t.Error("known under any name, and not under its own")
			}
		}
	})
}
