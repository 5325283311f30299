package replay

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"proctor/internal/client"
)

// Mask makes alike what is different in every run.
type Mask struct {
	Name    string
	pattern *regexp.Regexp
	with    string
}

// masks by the name that --tolerate gives them.
func masks() map[string][]Mask {
	m := func(name, pattern, with string) Mask { return Mask{name, regexp.MustCompile(pattern), with} }
	return map[string][]Mask{
		"timings": {m("timings", `\b\d+m\d+\.\d+s\b`, "<time>"), m("timings", `\b\d+(?:\.\d+)?\s?(?:s|ms|us|µs|ns|sec|secs|seconds?|minutes?)\b`, "<time>"),
			m("timings", `\b\d\d:\d\d:\d\d(?:[.,]\d+)?`, "<time>"), m("timings", `\b\d{4}-\d\d-\d\d\b`, "<date>"),
			m("timings", `\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s+(?:\d\d:\d\d|\d{4})`, "<date>")},
		"pids":      {m("pids", `\bpid[ =:]*\d+`, "pid <n>"), m("pids", `\[\d+\] \d+`, "[<n>] <n>"), m("pids", `(?m)^(\S+\s+)\d+(\s+\d+\.\d)`, "$1<n>$2")},
		"addresses": {m("addresses", `0x[0-9a-f]{6,16}`, "<address>")},
		"hashes":    {m("hashes", `\b[0-9a-f]{7,40}\b`, "<hash>")},
		"tempnames": {m("tempnames", `/tmp/[\w.-]*`, "/tmp/<name>")},
		"space":     {m("space", `[ \t]+(?m:$)`, ""), m("space", `\s+\z`, "")},
	}
}

// ErrMask says that a mask's name is not known.
var ErrMask = errors.New("unknown mask")

// Masks gives the masks of names.
func Masks(names []string) ([]Mask, error) {
	known := masks()
	var out []Mask
	for _, n := range names {
		m, ok := known[n]
		if !ok {
			return nil, fmt.Errorf("%w %q; there are %s", ErrMask, n, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		out = append(out, m...)
	}
	return out, nil
}

func mask(s string, list []Mask) string {
	for _, m := range list {
		s = m.pattern.ReplaceAllString(s, m.with)
	}
	return s
}

// fatal reports whether no further call can be made: the server is gone, or the rollout over.
func fatal(err error) bool {
	var p *client.Problem
	return !errors.As(err, &p) || p.Status != 422 && p.Status != 413
}
