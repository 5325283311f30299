package normalize

import (
	"context"
	"path"
	"strings"

	"proctor/rules"
)

// CorpusFacts answers from the facts of a corpus row: refs, paths and contents before the call, by
// the names that the row uses. HEAD and what counts back from it are ancestors where the row does
// not say otherwise: every rollout starts there.
type CorpusFacts struct {
	Refs    map[string]string // ref as written, or an option -> ancestor, own, foreign, unknown
	Paths   map[string]string // path as written or absolute -> absent, visible, hidden
	Before  map[string]string // path -> content before the call
	Workdir string

	abs map[string]PathState
}

// NewCorpusFacts gives facts for a row. The maps may be nil; workdir makes relative paths absolute.
func NewCorpusFacts(refs, paths, before map[string]string, workdir string) *CorpusFacts {
	c := &CorpusFacts{Refs: refs, Paths: paths, Before: map[string]string{}, Workdir: workdir, abs: map[string]PathState{}}
	for p, s := range paths {
		c.abs[c.full(p)] = PathState(s)
	}
	for p, s := range before {
		c.Before[c.full(p)] = s
	}
	return c
}

func (c *CorpusFacts) full(p string) string {
	if strings.HasPrefix(p, "/") {
		return path.Clean(p)
	}
	return path.Join(c.Workdir, p)
}

// Ref answers by the row's refs; dir is not looked at.
func (c *CorpusFacts) Ref(_ context.Context, _, text string) rules.Standing {
	if s, ok := c.Refs[text]; ok {
		return rules.Standing(s)
	}
	if text == "HEAD" || text == "@" {
		return rules.Ancestor
	}
	for _, head := range [...]string{"HEAD~", "HEAD^", "@~", "@^"} {
		if rest, ok := strings.CutPrefix(text, head); ok && strings.Trim(rest, "0123456789~^") == "" {
			return rules.Ancestor
		}
	}
	return rules.Unknown
}

// Path answers for a path, as written or absolute, and for what lies below a hidden or absent one.
func (c *CorpusFacts) Path(_ context.Context, p string) PathState {
	if s, ok := c.Paths[p]; ok {
		return PathState(s)
	}
	if len(c.abs) == 0 {
		return PathUnknown
	}
	q := c.full(p)
	if s, ok := c.abs[q]; ok {
		return s
	}
	for d := path.Dir(q); d != "/" && d != "."; d = path.Dir(d) {
		if s := c.abs[d]; s == PathHidden || s == PathAbsent {
			return s
		}
	}
	for w, s := range c.Paths {
		// As written, from another folder than the workdir: where an earlier call went to.
		if s == string(PathHidden) && strings.Contains(w, "/") && w[0] != '/' && strings.HasSuffix(q, "/"+w) {
			return PathHidden
		}
	}
	return PathUnknown
}

// Real knows no links.
func (c *CorpusFacts) Real(_ context.Context, p string) string { return p }

// Read gives a file's content before the call.
func (c *CorpusFacts) Read(_ context.Context, p string, limit int64) ([]byte, bool) {
	s, ok := c.Before[c.full(p)]
	if !ok {
		return nil, false
	}
	if int64(len(s)) > limit {
		s = s[:limit]
	}
	return []byte(s), true
}

// HiddenPaths lists the paths that the row says are hidden, for walks and patterns.
func (c *CorpusFacts) HiddenPaths() []string {
	var out []string
	for p, s := range c.Paths {
		if s == string(PathHidden) && !strings.ContainsAny(p, "$*?[") {
			out = append(out, c.full(p))
		}
	}
	return out
}
