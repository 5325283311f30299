package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"proctor/rules"
)

// maxTaskFile bounds a task file, in bytes.
const maxTaskFile = 16 << 20

// taskDoc is what rules need of a task.yaml, a corpus row's task or a whole corpus row. Other keys
// are other readers' business.
type taskDoc struct {
	Workdir     string         `yaml:"workdir"`
	Instruction string         `yaml:"instruction"`
	HiddenPaths []string       `yaml:"hidden_paths"`
	TestPaths   []string       `yaml:"test_paths"`
	Vars        map[string]any `yaml:"vars"`
	Network     any            `yaml:"network"`
}

// readTaskCase reads the task of a case, with facts and setup where the file is a corpus row.
func readTaskCase(file string) (rules.Case, error) {
	var c rules.Case
	info, err := os.Stat(file)
	if err != nil {
		return c, err
	}
	if info.Size() > maxTaskFile {
		return c, fmt.Errorf("%s: the task file is larger than %d bytes", file, maxTaskFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	var probe struct {
		Task map[string]any `yaml:"task"` // no *yaml.Node: that would take the task's own keys for a node's
	}
	var doc taskDoc
	if err := yaml.Unmarshal(data, &probe); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	if probe.Task != nil {
		var row struct {
			Task  taskDoc          `yaml:"task"`
			Setup []rules.ToolCall `yaml:"setup"`
			Facts rules.TestFacts  `yaml:"facts"`
		}
		if err := yaml.Unmarshal(data, &row); err != nil {
			return c, fmt.Errorf("%s: %w", file, err)
		}
		doc, c.Setup, c.Facts = row.Task, row.Setup, row.Facts
	} else {
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return c, fmt.Errorf("%s: %w", file, err)
		}
	}
	doc.instructionFile(filepath.Dir(file))
	c.Vars, err = doc.vars()
	if err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// instructionFile reads the instruction where it names a file beside the task.
func (d *taskDoc) instructionFile(dir string) {
	if !filepath.IsLocal(d.Instruction) || len(d.Instruction) > 255 {
		return
	}
	if text, err := os.ReadFile(filepath.Join(dir, d.Instruction)); err == nil {
		d.Instruction = string(text)
	}
}

// vars gives the task variables that rules see.
func (d *taskDoc) vars() (rules.Vars, error) {
	known := rules.TaskVars()
	v := rules.Vars{}
	for name, x := range d.Vars {
		if _, ok := known[name]; !ok {
			return nil, fmt.Errorf("vars: there is no task variable %q", name)
		}
		list, err := varTexts(x)
		if err != nil {
			return nil, fmt.Errorf("vars.%s: %w", name, err)
		}
		v[name] = list
	}
	for name, list := range map[string][]string{"hidden_paths": d.HiddenPaths, "test_paths": d.TestPaths} {
		if list != nil {
			v[name] = list
		}
	}
	for name, text := range map[string]string{"workdir": d.Workdir, "instruction": d.Instruction} {
		if text != "" {
			v[name] = []string{text}
		}
	}
	if n, ok := d.Network.(map[string]any); ok {
		if agent, ok := n["agent"].(string); ok {
			v["network"] = []string{agent}
		}
	}
	return v, nil
}

// varTexts reads a variable's value: text, a number or a list of them.
func varTexts(x any) ([]string, error) {
	switch x := x.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{x}, nil
	case int, float64, bool:
		return []string{fmt.Sprint(x)}, nil
	case []any:
		var out []string
		for _, e := range x {
			one, err := varTexts(e)
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, nil
	}
	return nil, fmt.Errorf("it must be text or a list of texts")
}
