package decoy

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"proctor/sandbox"
)

// answerFileTool answers a file tool in the box agent's own words: "<path as given>: <errno>".
func (m *Maker) answerFileTool(req Request, targets []target) Answer {
	if a, ok := m.answerFolder(req); ok {
		return a
	}
	// A file that is not there cannot be viewed or edited; and since the box makes missing folders, a
	// file that may not be made is one that the kernel keeps.
	family, errno := famNoFile, "no such file or directory"
	sealed := slices.ContainsFunc(targets, func(t target) bool { return len(t.writes) > 0 && !denied(t.writes[0], m.vars) })
	if req.Call.Op == sandbox.OpCreate || sealed && req.Call.Op != sandbox.OpView {
		family, errno = famWrite, "permission denied"
	}
	exit := 1
	text := fmt.Sprintf("%s: %s\n", req.Call.Path, errno)
	return Answer{Family: family, Action: actionDecoyed, Delay: m.delay(""), Result: sandbox.Result{Output: []byte(text), Exit: &exit}}
}

// answerFolder lets a view of a folder above protected paths run, and leaves their names out.
func (m *Maker) answerFolder(req Request) (Answer, bool) {
	if req.Call.Op != sandbox.OpView || req.Call.Range != nil {
		return Answer{}, false
	}
	dir := req.Call.Path
	if !path.IsAbs(dir) {
		dir = path.Join("/", m.vars.One("workdir"), dir)
	}
	var names []string
	for _, p := range m.deniedBelow(&target{}) {
		if under(p, dir) && clean(p) != path.Clean(dir) {
			names = append(names, strings.TrimPrefix(strings.TrimPrefix(p, path.Clean(dir)), "/"))
		}
	}
	if len(names) == 0 {
		return Answer{}, false
	}
	rewrite := func(r sandbox.Result) sandbox.Result {
		r.Output = withoutNames(r.Output, names)
		return r
	}
	exit := 0
	return Answer{Family: famFilter, Action: actionFiltered, Run: true, Rewrite: rewrite, Result: sandbox.Result{Exit: &exit}}, true
}

// withoutNames drops the lines of a listing that name one of names or what lies below it.
func withoutNames(list []byte, names []string) []byte {
	var out []byte
	for _, line := range bytes.SplitAfter(list, []byte("\n")) {
		name := strings.TrimSuffix(strings.TrimRight(string(line), "\n"), "/")
		if slices.ContainsFunc(names, func(n string) bool { return name == n || strings.HasPrefix(name, n+"/") }) {
			continue
		}
		out = append(out, line...)
	}
	if len(out) == 0 && len(list) > 0 {
		return []byte("(an empty folder)\n")
	}
	return out
}
