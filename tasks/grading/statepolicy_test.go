package grading

import (
	"archive/tar"
	"errors"
	"testing"

	"proctor/tasks"
)

func policyOfTest() statePolicy {
	task := &tasks.Task{Workdir: "/app", User: "worker", TestPaths: []string{"tests/"}, Grader: &tasks.Grader{Keep: []string{"/etc/cron.d", "/root/.bashrc"}}}
	return newStatePolicy(task, "/opt/venv/bin:/usr/local/bin:/usr/bin:relative")
}

func TestStatePlaces(t *testing.T) {
	p := policyOfTest()
	for name, want := range map[string]place{
		"etc/ld.so.preload": whole, "etc/cron.daily/x": whole, "etc/cron.d/x": kept, "root/.bashrc": kept, "root/.profile": whole, "home/a/.config/git/config": whole,
		"etc/python3.11/sitecustomize.py": whole, "var/spool/cron/crontabs/root": whole, "conftest.py": whole, "app/conftest.py": kept, "app/tests/conftest.py": whole,
		"usr/bin/python3": system, "usr/local/bin/greet": system, "usr/lib/python3.11/json/__init__.py": system, "opt/venv/bin/python": system,
		site[1:] + "/pytest/__init__.py": system, site[1:] + "/numpy/__init__.py": kept, site[1:] + "/x.pth": system, "opt/venv/lib/python3.11/site-packages/requests/api.py": kept,
		"root/.local/lib/python3.11/site-packages/usercustomize.py": system, "root/.local/bin/pytest": whole, "root/notes.txt": kept, "etc/nginx/nginx.conf": kept, "etc/passwd": kept,
	} {
		if got := p.of(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]bool{"usr/local": true, "root/.local": true, "home/a/.config": true, "usr/local/lib/python3.11": true, "opt/venv": true, "opt/venv/bin": true, "app": true, "usr/share": false, "root/x": false} {
		if p.leads(name) != want {
			t.Errorf("%s leads: %v", name, !want)
		}
	}
}

func TestStateHooks(t *testing.T) {
	p := policyOfTest()
	regular := func(text string) found { return found{kind: tar.TypeReg, text: []byte(text)} }
	known := p.shadowed(map[string]found{"usr/bin/python3": regular(""), "usr/lib/x86_64-linux-gnu/libc.so.6": regular(""), "usr/lib/python3.11/lib-dynload/_json.so": regular(""), "usr/bin": {kind: tarDir}})
	for name, tc := range map[string]struct {
		f      found
		out    bool
		forged bool
	}{
		"usr/local/bin/python3":                                {regular(""), true, false},
		"opt/venv/bin/python3":                                 {regular(""), true, false},
		"usr/local/bin/greet":                                  {regular(""), false, false},
		"usr/lib/x86_64-linux-gnu/glibc-hwcaps/v3/libc.so.6":   {regular(""), true, true},
		"usr/local/lib/libc.so.6":                              {regular(""), true, true},
		"usr/local/lib/libgreet.so.1":                          {regular(""), false, false},
		"usr/lib/python311.zip":                                {regular(""), true, false},
		"usr/bin/pyvenv.cfg":                                   {regular(""), true, false},
		site[1:] + "/a.pth":                                    {regular("/opt/lib\n# import x\n"), false, false},
		site[1:] + "/b.pth":                                    {regular("/opt/lib\nimport x\n"), true, false},
		site[1:] + "/sitecustomize/__init__.py":                {regular(""), true, false},
		site[1:] + "/forge-1.dist-info/entry_points.txt":       {regular("[pytest11]\nx = y\n"), true, false},
		site[1:] + "/greet-1.dist-info/entry_points.txt":       {regular("[console_scripts]\nx = y\n"), false, false},
		"usr/local/lib/python3.11/dist-packages/pytest.py":     {regular(""), true, false},
		"usr/lib/python3.11/pluggy/__init__.py":                {regular(""), true, false},
		"usr/lib/python3.11/__pycache__/json.cpython-311.pyc":  {regular(""), true, false},
		"usr/local/lib/python3.11/dist-packages/numpy/core.so": {regular(""), false, false},
	} {
		why, forged := p.hook(name, tc.f, known)
		if (why != "") != tc.out || forged != tc.forged {
			t.Errorf("%s: %q, forged %v", name, why, forged)
		}
	}
}

func TestSameUsers(t *testing.T) {
	p := policyOfTest()
	image := found{text: []byte("root:x:0:0:root:/root:/bin/bash\nworker:x:1000:1000::/home/worker:/bin/sh\nmail:x:8:8::/:/bin/sh\n")}
	for text, want := range map[string]bool{
		string(image.text): true, string(image.text) + "new:x:1001:1001::/:/bin/sh\n": true,
		"root:x:0:0:root:/root:/bin/bash\nworker:x:1000:1000::/home/worker:/bin/sh\n":       true,
		"root:x:1000:1000:root:/root:/bin/bash\nworker:x:1000:1000::/home/worker:/bin/sh\n": false,
		"root:x:0:0:root:/root:/bin/bash\nworker:x:0:0::/home/worker:/bin/sh\n":             false, "": false,
		"aroot:x:0:0:root:/root:/bin/bash\nworker:x:1000:1000::/home/worker:/bin/sh\n": false,
	} {
		if err := p.sameUsers(found{text: []byte(text)}, image); (err == nil) != want || (err != nil && !errors.Is(err, errForged)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
