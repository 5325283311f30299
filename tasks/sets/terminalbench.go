package sets

import (
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"proctor/tasks"
)

// Terminal-Bench 1: task.yaml with the instruction in it, Dockerfile, docker-compose.yaml, tests/,
// run-tests.sh, solution.sh. The task is solved where all tests pass.

// terminalBenchTask is what of a task.yaml counts here.
type terminalBenchTask struct {
	ID           string  `yaml:"id"`
	Instruction  string  `yaml:"instruction"`
	AgentTimeout float64 `yaml:"max_agent_timeout_sec"`
	TestTimeout  float64 `yaml:"max_test_timeout_sec"`
	Parser       string  `yaml:"parser_name"`
}

func isTerminalBench(dir string) bool {
	return isFile(filepath.Join(dir, tasks.TaskFile)) && isFile(filepath.Join(dir, "Dockerfile")) &&
		(isFile(filepath.Join(dir, "run-tests.sh")) || isFile(filepath.Join(dir, "docker-compose.yaml")))
}

func terminalBench(dir string) (*draft, []tasks.Problem) {
	d := newDraft("terminal-bench")
	file := filepath.Join(dir, tasks.TaskFile)
	var t terminalBenchTask
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, &t)
	}
	if err != nil {
		return d, []tasks.Problem{{File: file, Message: "cannot be read: " + err.Error(), Remedy: "correct it"}}
	}
	d.task.ID = idOf(filepath.Base(dir))
	d.statement(t.Instruction)
	d.task.Build = &tasks.Build{Dockerfile: "Dockerfile"}
	d.task.Workdir = workdirOf(filepath.Join(dir, "Dockerfile"))
	d.task.Network.Agent = "none"
	d.task.Env = map[string]string{"TEST_DIR": "/tests"} // as the set's compose files have it
	if t.AgentTimeout > 0 {
		d.task.Limits.LifetimeS = int(t.AgentTimeout)
	}
	g := d.task.Grader
	g.Kind, g.Report = "state", "exit"
	g.FailToPass, g.PassToPass = []string{}, []string{}
	if t.TestTimeout > 0 {
		g.TimeoutS = int(t.TestTimeout)
	}
	if info, err := os.Stat(filepath.Join(dir, "tests")); err == nil && info.IsDir() {
		g.Files, g.FilesTo = "tests", "/tests"
	}
	g.Script = "run-tests.sh"
	for _, name := range []string{"solution.sh"} {
		if isFile(filepath.Join(dir, name)) {
			d.task.Solution = name
		}
	}
	return d, nil
}
