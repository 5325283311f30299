package grading

import (
	"archive/tar"
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// found is what stands at a path.
type found struct {
	kind     byte // tar's type
	mode     int64
	uid, gid int
	link     string
	sum      [32]byte
	text     []byte // of the few files whose content decides
}

// same reports whether two are alike but for their times.
func (f found) same(g found) bool {
	return f.kind == g.kind && f.mode == g.mode && f.uid == g.uid && f.gid == g.gid && f.link == g.link && f.sum == g.sum
}

// decides reports whether the content of a file is asked for.
func decides(name string) bool {
	return strings.HasSuffix(name, ".pth") || strings.HasSuffix(name, "/entry_points.txt") || name == "etc/passwd"
}

// hook says why something that the agent added where the system lies is taken out; forged, where it is
// nothing that honest work brings about and nothing may be run beside it. "" for what stays.
func (p statePolicy) hook(name string, f found, known shadowed) (why string, forged bool) {
	dir, file := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	switch {
	case p.programs[dir] && known.programs[file] && f.kind != tarDir:
		return "takes the place of a program of the image", false
	case strings.Contains(file, ".so") && known.libraries[file] && !isSite(name):
		return fmt.Sprintf("the loader would take it for the image's %s", file), true
	case strings.HasSuffix(file, ".pyc"):
		return "compiled: read in place of its source", false
	case pythonZip.MatchString(name):
		return "Python looks in it before its own library", false
	case file == "pyvenv.cfg":
		return "Python runs it at start-up", false
	}
	rest, ok := inSite(name)
	if !ok {
		rest, ok = inLibrary(name)
	}
	if !ok {
		return "", false
	}
	return pythonHook(rest, f)
}

const tarDir = '5'

var (
	pythonZip     = regexp.MustCompile(`^(usr/|usr/local/)?lib(64)?/python[0-9]+\.zip$`)
	pythonLibrary = regexp.MustCompile(`/python3\.[0-9]+/(?:lib-dynload/)?([^/].*)$`)
)

func isSite(name string) bool {
	_, ok := inSite(name)
	return ok || strings.Contains(name, "/lib-dynload/")
}

// inLibrary gives what follows the folder of Python's standard library in a path.
func inLibrary(name string) (string, bool) {
	if m := pythonLibrary.FindStringSubmatch(name); m != nil {
		return m[1], true
	}
	return "", false
}

// pythonHook is hook for what Python imports by name.
func pythonHook(rest string, f found) (string, bool) {
	module := moduleOf(rest)
	top, _, _ := strings.Cut(rest, "/")
	switch {
	case module == "sitecustomize" || module == "usercustomize":
		return "Python runs it at start-up", false
	case strings.HasSuffix(rest, ".pth"):
		if f.kind == tar.TypeReg && f.text == nil {
			return "is longer than what leads to folders", false
		}
		if oddPth(f.text) {
			return "is read as other lines by other Pythons", false
		}
		for line := range bytes.Lines(f.text) {
			if bytes.HasPrefix(line, []byte("import ")) || bytes.HasPrefix(line, []byte("import\t")) {
				return "holds code that Python runs at start-up", false
			}
		}
	case strings.HasSuffix(rest, "/entry_points.txt"):
		if bytes.Contains(f.text, []byte("pytest11")) {
			return "registers a plugin with pytest", false
		}
	case runnerModules[module] && !strings.HasSuffix(top, ".dist-info") && !strings.HasSuffix(top, ".egg-info"):
		return "takes the place of a module that the runner imports", false
	}
	return "", false
}

// shadowed are names of the image that something added could take the place of.
type shadowed struct{ programs, libraries map[string]bool }

func (p statePolicy) shadowed(image map[string]found) shadowed {
	s := shadowed{map[string]bool{}, map[string]bool{}}
	for name, f := range image {
		dir, file := path.Split(name)
		if f.kind == tarDir {
			continue
		}
		if p.programs[strings.TrimSuffix(dir, "/")] {
			s.programs[file] = true
		}
		if strings.Contains(file, ".so") && !isSite(name) {
			s.libraries[file] = true
		}
	}
	return s
}

// sameUsers refuses a passwd file in which root, or the user that the verifier runs as, is another.
func (p statePolicy) sameUsers(now, image found) error {
	for line := range bytes.Lines(image.text) {
		user, _, _ := strings.Cut(string(line), ":")
		if (user == "root" || user == p.user) && !bytes.Contains(append([]byte("\n"), now.text...), append([]byte("\n"), bytes.TrimSpace(line)...)) {
			return fmt.Errorf("%w: /etc/passwd: %s is not who it was", errForged, user)
		}
	}
	return nil
}
