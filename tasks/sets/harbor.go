package sets

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"proctor/tasks"
)

// Harbor, the form of Terminal-Bench 2: task.toml, instruction.md, environment/Dockerfile, tests/test.sh
// that writes a reward to /logs/verifier, solution/solve.sh. What is graded is the state of the
// container.

func isHarbor(dir string) bool { return isFile(filepath.Join(dir, "task.toml")) }

// harborTask is what of a task.toml counts here, with the older spellings. Other keys are passed over,
// as Harbor does.
type harborTask struct {
	Task struct {
		Name string `toml:"name"`
	} `toml:"task"`
	Verifier struct {
		TimeoutS    float64        `toml:"timeout_sec"`
		Env         map[string]any `toml:"env"`
		NetworkMode string         `toml:"network_mode"`
	} `toml:"verifier"`
	Agent struct {
		TimeoutS    float64 `toml:"timeout_sec"`
		NetworkMode string  `toml:"network_mode"`
		User        string  `toml:"user"`
	} `toml:"agent"`
	Environment struct {
		Image         string         `toml:"docker_image"`
		Workdir       string         `toml:"workdir"`
		CPUs          float64        `toml:"cpus"`
		MemoryMB      int64          `toml:"memory_mb"`
		StorageMB     int64          `toml:"storage_mb"`
		Memory        string         `toml:"memory"`
		Storage       string         `toml:"storage"`
		NetworkMode   string         `toml:"network_mode"`
		AllowInternet *bool          `toml:"allow_internet"`
		AllowedHosts  []string       `toml:"allowed_hosts"`
		Env           map[string]any `toml:"env"`
		GPUs          int            `toml:"gpus"`
	} `toml:"environment"`
}

func harbor(dir string) (*draft, []tasks.Problem) {
	d := newDraft("harbor")
	file := filepath.Join(dir, "task.toml")
	var t harborTask
	if _, err := toml.DecodeFile(file, &t); err != nil {
		p := tasks.Problem{File: file, Message: "is no task.toml that can be read: " + err.Error(), Remedy: "correct it"}
		if at, ok := err.(toml.ParseError); ok {
			p.Line = at.Position.Line
		}
		return d, []tasks.Problem{p}
	}
	text, problems := readText(dir, "instruction.md")
	d.statement(text)
	d.task.ID = idOf(filepath.Base(dir))
	if t.Task.Name != "" {
		d.task.ID = idOf(t.Task.Name)
	}
	env := t.Environment
	dockerfile := filepath.Join("environment", "Dockerfile")
	d.task.Workdir = env.Workdir
	if d.task.Workdir == "" {
		d.task.Workdir = workdirOf(filepath.Join(dir, dockerfile))
	}
	if env.Image != "" {
		d.task.Image = env.Image
	} else {
		d.task.Build = &tasks.Build{Dockerfile: filepath.ToSlash(dockerfile)}
	}
	if isFile(filepath.Join(dir, "environment", "docker-compose.yaml")) {
		problems = append(problems, tasks.Problem{File: dir, Field: "environment", Message: "is several containers (docker-compose.yaml); only one is run here", Remedy: "put the services into one image"})
	}
	if env.GPUs > 0 {
		problems = append(problems, tasks.Problem{File: file, Field: "environment.gpus", Message: "asks for GPUs, which sandboxes do not have", Remedy: "leave the task out"})
	}
	d.task.User = t.Agent.User
	d.task.Env = plainEnv(env.Env)
	problems = append(problems, d.harborLimits(file, &t)...)
	d.task.Network.Agent = harborNetwork(&t)
	d.task.Network.AllowedHosts = env.AllowedHosts
	d.verifier(&t)
	if isFile(filepath.Join(dir, "solution", "solve.sh")) {
		d.task.Solution = "solution/solve.sh"
	}
	return d, problems
}

// size is an amount as older files write it: "4G", "512M", "10Gi".
var size = regexp.MustCompile(`^([0-9]+)([MG])i?B?$`)

func (d *draft) harborLimits(file string, t *harborTask) []tasks.Problem {
	var problems []tasks.Problem
	read := func(field string, mb int64, text string) int64 {
		if mb > 0 || text == "" {
			return mb
		}
		m := size.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(text)))
		if m == nil {
			problems = append(problems, tasks.Problem{File: file, Field: "environment." + field, Message: fmt.Sprintf("%q is no size", text), Remedy: "write " + field + "_mb = 4096"})
			return 0
		}
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits; an overflow is refused as out of range later
		if m[2] == "G" {
			n *= 1024
		}
		return n
	}
	env := t.Environment
	d.task.Limits.CPUs = env.CPUs
	if mb := read("memory", env.MemoryMB, env.Memory); mb > 0 {
		d.task.Limits.MemoryMB = mb
	}
	d.task.Limits.DiskMB = read("storage", env.StorageMB, env.Storage)
	if t.Agent.TimeoutS > 0 {
		d.task.Limits.LifetimeS = int(t.Agent.TimeoutS)
	}
	return problems
}

// harborNetwork gives what the agent can reach. Harbor's default is the open network; a task that does
// not say so gets none here, since what is open answers for itself.
func harborNetwork(t *harborTask) string {
	mode := t.Agent.NetworkMode
	if mode == "" {
		mode = t.Environment.NetworkMode
	}
	switch {
	case mode == "public" || mode == "" && t.Environment.AllowInternet != nil && *t.Environment.AllowInternet:
		return "open"
	case mode == "allowlist":
		return "allowlist"
	}
	return "none"
}

// verifier sets the grader: tests go to /tests, and the reward comes from /logs/verifier.
func (d *draft) verifier(t *harborTask) {
	g := d.task.Grader
	g.Kind, g.Report = "state", "reward-file"
	g.Files, g.FilesTo = "tests", "/tests"
	g.FailToPass, g.PassToPass = []string{}, []string{}
	if t.Verifier.TimeoutS > 0 {
		g.TimeoutS = int(t.Verifier.TimeoutS)
	}
	var lines []string
	env := plainEnv(t.Verifier.Env)
	for _, name := range sortedNames(env) {
		lines = append(lines, "export "+name+"="+quote(env[name])+";")
	}
	lines = append(lines, "mkdir -p /logs/verifier && rm -f /logs/verifier/reward.*; bash /tests/test.sh;",
		"if [ -f /logs/verifier/reward.txt ]; then cat /logs/verifier/reward.txt > {report};",
		`elif [ -f /logs/verifier/reward.json ]; then tr -d '\n' < /logs/verifier/reward.json | sed -n 's/.*"reward"[[:space:]]*:[[:space:]]*\([0-9.eE+-]*\).*/\1/p' > {report}; fi`)
	g.Command = strings.Join(lines, " ")
}

// plainEnv gives variables that name a value; those that ask for one of the host (${NAME}) are left out.
func plainEnv(env map[string]any) map[string]string {
	out := map[string]string{}
	for name, v := range env {
		if text := fmt.Sprint(v); !strings.Contains(text, "${") {
			out[name] = text
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
