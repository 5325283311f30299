package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"proctor/rules"
)

// madeBlocks are blocks of the usual forms, for rules that a benchmark makes; %d is the rule's number.
var madeBlocks = []string{
	`{command: {program: [tool%[1]d, git], line|re: '(?i)\bfrobnicate%[1]d\s+--(?:now|later)\b'}}`,
	`{script: {content|re: '(?:import|from)\s+secret_%[1]d|open\([^)]*hidden%[1]d'}}`,
	`{command: {line|contains: ["word-%[1]d", "${task.upstream_repo}/%[1]d"]}}`,
	`{file: {path|glob: "**/conftest%[1]d.py", added|re: 'def\s+pytest_\w+%[1]d'}}`,
	`{command: {paths|under: ["${task.hidden_paths}/%[1]d", /opt/%[1]d], args|re: '^-[a-z]*r'}}`,
}

// coreAndMade gives the core packs, filled up to n rules with made ones.
func coreAndMade(n int) (*rules.Packs, error) {
	core, err := rules.Core()
	if err != nil {
		return nil, err
	}
	missing := n - len(core.Rules())
	if missing <= 0 {
		return core, nil
	}
	var b strings.Builder
	b.WriteString("pack: made\nversion: 1.0.0\nrules:\n")
	for i := range missing {
		fmt.Fprintf(&b, "  - {id: made-%d, title: x, severity: low, category: fabrication, match: {any: [%s]}}\n", i, fmt.Sprintf(madeBlocks[i%len(madeBlocks)], i))
	}
	dir, err := os.MkdirTemp("", "proctor-rules-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "made.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	made, probs := rules.Load(file)
	if errs := rules.Errors(probs); len(errs) > 0 {
		return nil, errs[0]
	}
	all, probs := rules.Merge(core, made)
	if errs := rules.Errors(probs); len(errs) > 0 {
		return nil, errs[0]
	}
	return all, nil
}
