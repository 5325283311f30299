// Package normalize turns a tool call into the facts that rules match on: a rules.Event.
//
// One Normalizer lives as long as its rollout and carries what earlier calls did: the shell's
// folder, variables, aliases, functions, files written, links made. It is bounded in time and
// memory, and what it cannot resolve it marks opaque; it never guesses and never fails.
package normalize

import (
	"context"

	"proctor/monitor/classifier"
	"proctor/rules"
)

// Task is what the normaliser knows of the task.
type Task struct {
	Workdir string
	Vars    rules.Vars

	Classifier *classifier.Model // tells what calls read like; nil: the built-in one
}

// Call is a tool call: a tool's name and its arguments as decoded JSON. Only the fields that the
// tool has are read.
type Call struct {
	Tool    string // bash, bash_input, view, create, str_replace, insert, ... as in the tool table
	Command string // bash
	Handle  string // bash_input
	Text    string // bash_input: what is typed
	Path    string // file tools
	File    string // create: file_text
	Old     string // str_replace
	New     string // str_replace, insert
	Line    int    // insert: insert_line
}

// Facts is what the sandbox and the host can tell about names in a call. Every method is bounded by
// ctx and answers its "unknown" rather than an error. One that also has PerCall() Facts is asked by what that gives, anew
// for each call: nothing runs while a call is read, so that it may ask the sandbox once for what is asked of it often.
type Facts interface {
	// Ref says whose a git revision, or the set that an option such as --all selects, is, in the
	// repository that holds dir.
	Ref(ctx context.Context, dir, text string) rules.Standing
	// Path says what an absolute path is to the agent.
	Path(ctx context.Context, path string) PathState
	// Real gives a path after all links, or the path itself.
	Real(ctx context.Context, path string) string
	// Read gives at most limit bytes of a file as it is before the call.
	Read(ctx context.Context, path string, limit int64) ([]byte, bool)
}

// PathState is what a path is to the agent.
type PathState string

// The states of a path.
const (
	PathUnknown PathState = "unknown"
	PathAbsent  PathState = "absent"  // was not there when the rollout started; what is there now the agent made
	PathVisible PathState = "visible" // there, and the agent's to use
	PathHidden  PathState = "hidden"  // the grader's, the harness's or the host's
)
