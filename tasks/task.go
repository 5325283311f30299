package tasks

import (
	"proctor/sandbox"
)

// Task is what is to be solved. It comes from a loader; Validate has passed on every Task that a
// loader gives.
type Task struct {
	ID          string            `json:"id" yaml:"id"`
	Instruction string            `json:"instruction" yaml:"instruction"` // text; the loader has read the file
	Image       string            `json:"image,omitempty" yaml:"image,omitempty"`
	Build       *Build            `json:"build,omitempty" yaml:"build,omitempty"`
	Workdir     string            `json:"workdir" yaml:"workdir"`
	User        string            `json:"user,omitempty" yaml:"user,omitempty"`
	Env         map[string]string `json:"env,omitempty" yaml:"env,omitempty"`
	Setup       []string          `json:"setup,omitempty" yaml:"setup,omitempty"` // shell lines, once, in the prepared image
	Network     Network           `json:"network" yaml:"network"`
	Limits      Limits            `json:"limits" yaml:"limits"`
	HiddenPaths []string          `json:"hidden_paths,omitempty" yaml:"hidden_paths,omitempty"` // absolute
	TestPaths   []string          `json:"test_paths,omitempty" yaml:"test_paths,omitempty"`     // relative to Workdir
	Vars        Vars              `json:"vars" yaml:"vars"`
	Grader      *Grader           `json:"grader,omitempty" yaml:"grader,omitempty"` // nil: the task cannot be graded
	Solution    string            `json:"solution,omitempty" yaml:"solution,omitempty"`
	// Squash makes the start state a commit without history: for sets whose history holds the answer.
	Squash bool   `json:"squash,omitempty" yaml:"squash,omitempty"`
	Source string `json:"source,omitempty" yaml:"source,omitempty"` // the set that the task was taken from, in a word
	Dir    string `json:"-" yaml:"-"`                               // folder on the host that files are relative to
}

// Build says how to make the task's image where Image names none.
type Build struct {
	Dockerfile string   `json:"dockerfile,omitempty" yaml:"dockerfile,omitempty"`
	Base       string   `json:"base,omitempty" yaml:"base,omitempty"` // image to start from
	Apt        []string `json:"apt,omitempty" yaml:"apt,omitempty"`
	Pip        []string `json:"pip,omitempty" yaml:"pip,omitempty"`
	Venv       string   `json:"venv,omitempty" yaml:"venv,omitempty"`     // absolute; a Python environment made there, before Pre
	Pre        []string `json:"pre,omitempty" yaml:"pre,omitempty"`       // shell lines before Pip
	Run        []string `json:"run,omitempty" yaml:"run,omitempty"`       // shell lines
	Files      string   `json:"files,omitempty" yaml:"files,omitempty"`   // folder copied over Workdir before Run
	Bundle     string   `json:"bundle,omitempty" yaml:"bundle,omitempty"` // git bundle cloned to Workdir before Run
}

// Network is what each phase can reach: none, allowlist or open.
type Network struct {
	Setup        string        `json:"setup,omitempty" yaml:"setup,omitempty"` // default open
	Agent        string        `json:"agent,omitempty" yaml:"agent,omitempty"` // default none
	AllowedHosts []string      `json:"allowed_hosts,omitempty" yaml:"allowed_hosts,omitempty"`
	SetupHosts   []string      `json:"setup_hosts,omitempty" yaml:"setup_hosts,omitempty"` // of setup, beside AllowedHosts
	PackageIndex *PackageIndex `json:"package_index,omitempty" yaml:"package_index,omitempty"`
}

// PackageIndex is a package index as it was at a time: what was uploaded later does not exist, nor does
// the task's own package from the version on that holds the fix. Phases with an allowlist have it.
type PackageIndex struct {
	Before string `json:"before" yaml:"before"` // a day, or an instant as RFC 3339 has it; the base commit's date
}

// Limits are a task's limits; zero fields take the sandbox's defaults.
type Limits struct {
	sandbox.Limits `yaml:",inline"`
	LifetimeS      int `json:"lifetime_s,omitempty" yaml:"lifetime_s,omitempty"`
}

// Vars are inputs to rules and judge beside the paths.
type Vars struct {
	UpstreamRepo  string   `json:"upstream_repo,omitempty" yaml:"upstream_repo,omitempty"` // owner/name
	UpstreamHosts []string `json:"upstream_hosts,omitempty" yaml:"upstream_hosts,omitempty"`
	Package       string   `json:"package,omitempty" yaml:"package,omitempty"`
	BaseVersion   string   `json:"base_version,omitempty" yaml:"base_version,omitempty"`
	FixVersion    string   `json:"fix_version,omitempty" yaml:"fix_version,omitempty"`
	BaseCommit    string   `json:"base_commit,omitempty" yaml:"base_commit,omitempty"`
	AllowedHosts  []string `json:"allowed_hosts,omitempty" yaml:"allowed_hosts,omitempty"`
}

// Grader says how a rollout's work becomes a Grade.
type Grader struct {
	Kind    string `json:"kind" yaml:"kind"`                             // patch or state
	Files   string `json:"files,omitempty" yaml:"files,omitempty"`       // folder, relative to Dir, copied over Workdir in the fresh sandbox
	FilesTo string `json:"files_to,omitempty" yaml:"files_to,omitempty"` // absolute; where Files go instead of Workdir
	// FromImage are hidden files that the image itself holds: hardening takes them away, and the grader
	// gets them from the image as it was before.
	Keep       []string     `json:"keep,omitempty" yaml:"keep,omitempty"` // kind state: absolute paths that stay as the agent left them, though they could steer a verifier
	FromImage  []ImageFiles `json:"from_image,omitempty" yaml:"from_image,omitempty"`
	TestPatch  string       `json:"test_patch,omitempty" yaml:"test_patch,omitempty"` // patch beside the task that makes the hidden tests of the start state's files
	Command    string       `json:"command" yaml:"command"`                           // {report} is replaced by the report's path
	Script     string       `json:"script,omitempty" yaml:"script,omitempty"`         // bash script beside the task, run in Command's place
	Report     string       `json:"report" yaml:"report"`                             // junit, pytest-json, go-test-json, log:<parser>, reward-file, exit
	FailToPass []string     `json:"fail_to_pass" yaml:"fail_to_pass"`
	PassToPass []string     `json:"pass_to_pass" yaml:"pass_to_pass"`
	TimeoutS   int          `json:"timeout_s,omitempty" yaml:"timeout_s,omitempty"` // default 600
	Reward     string       `json:"reward,omitempty" yaml:"reward,omitempty"`       // binary (default) or fraction
}

// ImageFiles are files of a task's raw image that the grader needs.
type ImageFiles struct {
	Path string `json:"path" yaml:"path"` // absolute; a file or a folder
	To   string `json:"to" yaml:"to"`     // relative to Workdir: what stands for Path there
}
