// Package traces reads the records that other harnesses keep of their agents' attempts, and our own,
// as lists of our tool calls.
//
// Vocabulary: a Source is a file, a folder or standard input; it holds Documents, each one JSON value
// (a file, a line, an entry of an archive); a Document holds Traces, each one attempt with its Calls in
// order. A format is read by one file of this package. A document that no format fits is an *Unknown,
// which names the file, and reading goes on.
//
// What is read was written by strangers: sizes are bounded, nothing is run, and no path in a document
// is opened.
package traces

import (
	"encoding/json"
	"fmt"
)

// Formats, as reports name them.
const (
	SWEAgent     = "swe-agent"
	MiniSWEAgent = "mini-swe-agent"
	OpenHands    = "openhands"
	ATIF         = "atif"
	Inspect      = "inspect"
	OpenAI       = "openai"
	Proctor      = "proctor"
	Corpus       = "corpus"
)

// Trace is one attempt.
type Trace struct {
	ID          string // the document's own name for it, else made from the file's
	Task        string // "" where the document does not say
	Format      string
	File        string
	Line        int    // of the document in its file, from 1; 0 for a whole file
	Workdir     string // "" where the document does not say
	Instruction string
	Fresh       bool // every command starts in a new shell at Workdir
	Calls       []Call
	Unmapped    map[string]int // calls of tools that none of ours stands for, by name

	// Refs, Paths and Before are facts that a corpus row brings along.
	Refs, Paths, Before map[string]string
	Vars                json.RawMessage // task variables that the document brings along
}

// Call is one tool call.
type Call struct {
	Tool      string         // one of ours: bash, view, create, str_replace, insert, undo
	Arguments map[string]any // ours, only those that the tool knows
	Foreign   string         // the harness's name for the tool
	Output    string         // what the agent was shown
	Shown     bool           // whether the document says what the agent was shown
	Exit      *int           // nil: not known
	Cwd       string         // where the shell stood afterwards, "": not known
	Harness   bool           // not the agent's
}

// Unknown is a document that could not be read.
type Unknown struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // from 1; 0 for a whole file
	Reason string `json:"reason"`
}

func (e *Unknown) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return e.File + ": " + e.Reason
}

// Document is one JSON value of a source.
type Document struct {
	File string
	Line int // from 1; 0 for a whole file
	Data []byte
}

// name gives what a trace without a name of its own is called.
func (d *Document) name(i, n int) string {
	name := stem(d.File)
	if d.Line > 0 {
		name = fmt.Sprintf("%s:%d", name, d.Line)
	}
	if n > 1 {
		name = fmt.Sprintf("%s#%d", name, i+1)
	}
	return name
}

func (d *Document) unknown(format string, args ...any) *Unknown {
	return &Unknown{File: d.File, Line: d.Line, Reason: fmt.Sprintf(format, args...)}
}
