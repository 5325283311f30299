package judge

import (
	"encoding/json"
	"strings"
)

// The shapes below are the part of an event that a judge reads. They are decoded leniently: a field
// that is missing or has another type stays empty, since facts come from a normaliser that may be
// newer than the judge.

type event struct {
	Call struct {
		Tool string `json:"tool"`
		Text string `json:"text"`
		Cwd  string `json:"cwd"`

		Suspicion float64            `json:"suspicion"`
		Asked     map[string]float64 `json:"asked"`
	} `json:"call"`
	Commands []entity `json:"command"`
	Files    []entity `json:"file"`
	Scripts  []entity `json:"script"`
	Packages []entity `json:"package"`
	Opaque   bool     `json:"opaque"`
}

// entity is a command, file, script or package; only the fields of its kind are filled.
type entity struct {
	Program string            `json:"program"`
	Args    []string          `json:"args"`
	Line    string            `json:"line"`
	Paths   []string          `json:"paths"`
	Writes  []string          `json:"writes"`
	Hidden  hidden            `json:"hidden"`
	Covers  []string          `json:"covers"`
	Copies  []string          `json:"copies"`
	Prints  string            `json:"prints"`
	Env     map[string]string `json:"env"`
	Stdin   string            `json:"stdin"`
	Opaque  bool              `json:"opaque"`
	Net     struct {
		Hosts []string `json:"host"`
		URLs  []string `json:"url"`

		Foreign  []string `json:"foreign"`
		Denied   []string `json:"denied"`
		Upstream []string `json:"upstream"`
	} `json:"net"`
	Git struct {
		Verb string `json:"verb"`
		Refs []struct {
			Text     string `json:"text"`
			Standing string `json:"standing"`
		} `json:"refs"`
	} `json:"git"`
	Span struct {
		Start int `json:"start"`
		End   int `json:"end"`
	} `json:"span"`

	Op      string `json:"op"`
	Path    string `json:"path"`
	Test    bool   `json:"test"`
	InTree  bool   `json:"in_tree"`
	New     bool   `json:"new"`
	There   bool   `json:"there"`
	Copy    bool   `json:"copy"`
	Grader  bool   `json:"grader"`
	Content string `json:"content"`
	Added   string `json:"added"`
	Removed string `json:"removed"`
	Before  string `json:"before"`

	Lang string   `json:"lang"`
	Cwd  string   `json:"cwd"`
	Via  []string `json:"via"`

	Manager  string `json:"manager"`
	Name     string `json:"name"`
	Spec     string `json:"spec"`
	Version  string `json:"version"`
	Own      bool   `json:"own"`
	Relation string `json:"relation"`
	Command  int    `json:"command"`
}

// hidden is a list of paths on a command or script and a bool on a file.
type hidden []string

// UnmarshalJSON takes both forms.
func (h *hidden) UnmarshalJSON(b []byte) error {
	var list []string
	if json.Unmarshal(b, &list) == nil {
		*h = list
		return nil
	}
	var yes bool
	if json.Unmarshal(b, &yes) == nil && yes {
		*h = hidden{""}
	}
	return nil
}

// isHidden reports whether the entity leads to a path that is the grader's or the harness's.
func (e entity) isHidden() bool { return len(e.Hidden) > 0 }

// code is the text that the entity brings into the world: what is added to a file, a script, or a
// command with its stdin.
func (e entity) code() string {
	switch {
	case e.Added != "":
		return e.Added
	case e.Content != "":
		return e.Content
	}
	return e.Line + "\n" + e.Stdin + "\n" + e.Prints
}

// allPaths gives every path that the entity names, its own included.
func (e entity) allPaths() []string {
	out := append([]string{}, e.Paths...)
	out = append(out, e.Writes...)
	if strings.HasPrefix(e.Path, "/") {
		out = append(out, e.Path)
	}
	return out
}

// callStrings gives every string value of the call's arguments, and the event's text.
func callStrings(c Case, ev event) []string {
	out := []string{ev.Call.Text}
	var v any
	if json.Unmarshal(c.Call, &v) == nil {
		out = appendStrings(out, v, 0)
	}
	return out
}

func appendStrings(out []string, v any, depth int) []string {
	if depth > 8 {
		return out
	}
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, x := range v {
			out = appendStrings(out, x, depth+1)
		}
	case map[string]any:
		for _, x := range v {
			out = appendStrings(out, x, depth+1)
		}
	}
	return out
}

// inCall reports whether s, which must not be blank, stands in the call word by word.
func inCall(c Case, s string) bool {
	if strings.TrimSpace(s) == "" {
		return false
	}
	var ev event
	_ = json.Unmarshal(c.Event, &ev) // lenient: what is missing stays empty
	for _, t := range callStrings(c, ev) {
		if strings.Contains(t, s) {
			return true
		}
	}
	return strings.Contains(string(c.Call), s)
}
