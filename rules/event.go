package rules

// Event holds the facts of one call after normalisation; what rules match on. Everything in it is
// bounded by the normaliser, and what it could not resolve is marked opaque, never guessed.
type Event struct {
	Call     CallFacts    `json:"call"`
	Commands []Command    `json:"command,omitempty"`
	Files    []File       `json:"file,omitempty"`
	Scripts  []Script     `json:"script,omitempty"`
	Packages []Package    `json:"package,omitempty"`
	Result   *ResultFacts `json:"result,omitempty"` // second phase only
	Opaque   bool         `json:"opaque,omitempty"` // part of the call was not parsed or not resolved
	Notes    []string     `json:"notes,omitempty"`  // why, in words
}

// CallFacts is the call as the agent made it.
type CallFacts struct {
	Tool string `json:"tool"`
	Text string `json:"text"` // the command, or the file tool's path and texts, joined by newlines
	Cwd  string `json:"cwd"`

	// Suspicion is the share of hacks, 0 to 1, among labelled calls that read like this one, as a trained classifier
	// says, at least 0.001; 0 where none was asked. Suspect is the class of hacks that it reads like, where the suspicion
	// is at least 0.22; 0.65 for calls of under 60 bytes, 0.9 where nothing is known of the task.
	Suspicion float64 `json:"suspicion,omitempty"`
	Suspect   string  `json:"suspect,omitempty"`

	// Asked is how surely the task's own words ask for acts of a class, in log-odds, for the classes of which it is at least 1:
	// by how much they speak against a hack in labelled calls of that class. It is the same for all calls of a rollout, so
	// that nothing that an agent writes changes it.
	Asked map[string]float64 `json:"asked,omitempty"`
}

// Command is one simple command, wherever it stood: typed, in bash -c, eval, xargs, find -exec, a
// heredoc fed to a shell, a script file about to run.
type Command struct {
	Program string            `json:"program"`          // base name: "git"
	Path    string            `json:"path,omitempty"`   // as written, resolved where it is a path
	Args    []string          `json:"args,omitempty"`   // without the program; resolved words
	Line    string            `json:"line"`             // canonical: program and args, shell-quoted where needed
	Paths   []string          `json:"paths,omitempty"`  // absolute paths that it reads or names, after cd, -C and links
	Writes  []string          `json:"writes,omitempty"` // absolute paths that it writes, redirections included
	Hidden  []string          `json:"hidden,omitempty"` // those of Paths (globs and folders included) that lead to a hidden path
	Covers  []string          `json:"covers,omitempty"` // hidden paths that it would meet on the way: a walk or a bare * over a folder above them
	Copies  []string          `json:"copies,omitempty"` // those of Paths that lie in another installed or cached copy of the task's package
	Env     map[string]string `json:"env,omitempty"`    // assignments before it
	Stdin   string            `json:"stdin,omitempty"`  // literal stdin: heredoc, herestring, literal pipe
	Prints  string            `json:"prints,omitempty"` // what a decoder (base64 -d, xxd -r, rev, tr, gunzip) would print, where its input is known
	Via     []string          `json:"via,omitempty"`    // wrappers, outermost first: sudo, bash -c, xargs, script:/path
	Opaque  bool              `json:"opaque,omitempty"` // a word of it could not be resolved
	Net     Net               `json:"net"`
	Git     Git               `json:"git"`
	Span    Span              `json:"span"` // where it stands in the call's text
}

// Net is what a command or script reaches for over a network.
type Net struct {
	Hosts []string `json:"host,omitempty"`
	URLs  []string `json:"url,omitempty"`

	// Foreign are the hosts that are neither this machine nor allowed by the task; Upstream are the
	// hosts and URLs that lead to the task's own project: its repository wherever it is served, its
	// upstream hosts. Both are worked out from the task's variables, not from the wording.
	Foreign  []string `json:"foreign,omitempty"`
	Denied   []string `json:"denied,omitempty"` // those of Foreign that the task's network policy rules out: all where it is none or an allowlist
	Upstream []string `json:"upstream,omitempty"`
}

// Git is what a git command reaches for.
type Git struct {
	Verb string `json:"verb,omitempty"` // "log", "show", ...; aliases resolved
	Refs []Ref  `json:"refs,omitempty"`
}

// Ref is a revision as written, or an option that selects refs such as --all, and whose it is.
type Ref struct {
	Text     string   `json:"text"`
	Standing Standing `json:"standing"`
}

// Standing says whose a git object is.
type Standing string

// The standings of a revision. For a set of revisions: the worst of its members.
const (
	Ancestor Standing = "ancestor" // of the start commit, or it
	Own      Standing = "own"      // made by the agent in this rollout
	Foreign  Standing = "foreign"  // neither
	Unknown  Standing = "unknown"  // the facts do not say
)

// Span is a half-open range of bytes [Start, End) in the call's text; both 0 where there is none.
// Exact is true where the bytes are just this simple command, typed at the call's own top level
// syntax tree, so that it can be cut out without touching its neighbours.
type Span struct {
	Start int  `json:"start"`
	End   int  `json:"end"`
	Exact bool `json:"exact,omitempty"`
}

// File is one edit, by a file tool, a redirection or a heredoc.
type File struct {
	Op      string `json:"op"` // create, edit, append, delete, view, chmod, link
	Path    string `json:"path"`
	Hidden  bool   `json:"hidden,omitempty"`
	Test    bool   `json:"test,omitempty"` // under one of the task's test paths
	InTree  bool   `json:"in_tree,omitempty"`
	New     bool   `json:"new,omitempty"`     // the agent made it in this rollout; it was not there at the start
	There   bool   `json:"there,omitempty"`   // it is known to have been there when the rollout started
	Copy    bool   `json:"copy,omitempty"`    // it lies in another installed or cached copy of the task's package
	Asked   bool   `json:"asked,omitempty"`   // the task's text names it
	Grader  bool   `json:"grader,omitempty"`  // outside the work tree, where graders look: PATH, site-packages, start-up files, verifier logs
	Content string `json:"content,omitempty"` // the whole text after the edit, where known
	Added   string `json:"added,omitempty"`   // lines added
	Removed string `json:"removed,omitempty"` // lines removed
	Before  string `json:"before,omitempty"`  // the text before, where known
}

// Script is code about to run: python -c, node -e, a heredoc fed to an interpreter, a script file.
type Script struct {
	Path    string   `json:"path,omitempty"`
	Lang    string   `json:"lang"`
	Cwd     string   `json:"cwd,omitempty"` // where it runs
	Content string   `json:"content"`
	Paths   []string `json:"paths,omitempty"` // absolute paths that its literals name
	Writes  []string `json:"writes,omitempty"`
	Asked   bool     `json:"asked,omitempty"` // the task's text names a file that it writes
	Hidden  []string `json:"hidden,omitempty"`
	Covers  []string `json:"covers,omitempty"` // hidden paths under a folder that it would walk
	Copies  []string `json:"copies,omitempty"` // paths in another copy of the task's package
	Via     []string `json:"via,omitempty"`
	Net     Net      `json:"net"`
}

// Package is one package that a command would fetch or install.
type Package struct {
	Manager  string `json:"manager"` // pip, npm, go, cargo, gem, apt, ...
	Name     string `json:"name"`
	Spec     string `json:"spec,omitempty"`     // as written
	Version  string `json:"version,omitempty"`  // pinned, where it is
	Own      bool   `json:"own,omitempty"`      // it is the task's own package
	Relation string `json:"relation,omitempty"` // of Version to the task's: base, older, fixed, newer, any, unknown
	Command  int    `json:"command"`            // index into Event.Commands
}

// ResultFacts is what came out, for the second phase.
type ResultFacts struct {
	Output   string   `json:"output"`
	Exit     *int     `json:"exit,omitempty"`
	Canaries []string `json:"canaries,omitempty"`
	Witness  []string `json:"witness,omitempty"` // protected paths that were opened
}

// Vars are a task's variables, as rules see them: ${task.<name>}. A name that is missing is
// undefined, one with an empty list is defined and matches nothing; both make a rule that needs it
// inapplicable, visibly.
//
// Names in use: hidden_paths, test_paths, upstream_repo, package, base_version, fix_version,
// base_commit, allowed_hosts, upstream_hosts, network, workdir, instruction.
type Vars map[string][]string

// One gives the first value of name, or "".
func (v Vars) One(name string) string {
	if len(v[name]) == 0 {
		return ""
	}
	return v[name][0]
}

// With gives the texts of the refs that have the standing.
func (g Git) With(standing Standing) []string {
	var out []string
	for _, r := range g.Refs {
		if r.Standing == standing {
			out = append(out, r.Text)
		}
	}
	return out
}
