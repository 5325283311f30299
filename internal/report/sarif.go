package report

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"proctor/internal/scan"
)

// The parts of SARIF 2.1.0 (OASIS, 27 March 2020) that a scan fills; section numbers stand at fields
// whose meaning is not plain.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string         `json:"id"`
		ShortDescription sarifText      `json:"shortDescription"`
		Properties       map[string]any `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"` // 3.27.10: error, warning, note
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"` // 3.27.17: what stays when lines move
		Properties          map[string]any    `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// SARIF writes a scan as one SARIF 2.1.0 run: a result for each suspected call, and a notification for
// each file that could not be read.
func SARIF(w io.Writer, r *scan.Report, version string) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "proctor", Version: version, Rules: []sarifRule{}}}, Results: []sarifResult{}}
	index := map[string]int{}
	for i := range r.Suspected {
		s := &r.Suspected[i]
		for _, c := range s.Calls {
			at, ok := index[c.Rule]
			if !ok {
				at = len(run.Tool.Driver.Rules)
				index[c.Rule] = at
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{c.Rule, sarifText{orText(c.Title, c.Rule)}, map[string]any{"class": c.Class, "severity": c.Severity}})
			}
			run.Results = append(run.Results, sarifCall(s, c, at))
		}
	}
	notes := []sarifNotification{}
	for _, u := range r.Unknown {
		notes = append(notes, sarifNotification{"warning", sarifText{u.Reason}, []sarifLocation{{Physical: physical(u.File, u.Line)}}})
	}
	run.Invocations = []sarifInvocation{{ExecutionSuccessful: true, ToolExecutionNotifications: notes}}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func sarifCall(s *scan.Suspect, c scan.SuspectedCall, rule int) sarifResult {
	state := "suspected"
	if c.Hack {
		state = "confirmed by " + c.By
	}
	text := fmt.Sprintf("Call %d of %s: %s (%s). %s", c.Ordinal, s.Trajectory, c.Class, state, orText(c.Reason, c.Title))
	if c.Evidence != "" {
		text += "\nEvidence: " + c.Evidence
	}
	where := fmt.Sprintf("%s/call/%d", s.Trajectory, c.Ordinal)
	return sarifResult{
		RuleID: c.Rule, RuleIndex: rule, Level: sarifLevel(c), Message: sarifText{text},
		Locations:           []sarifLocation{{physical(s.File, s.Line), []sarifLogical{{where, "member"}}}},
		PartialFingerprints: map[string]string{"call/v1": where + "/" + c.Rule},
		Properties:          map[string]any{"task": s.Task, "decision": c.Decision, "hack": c.Hack, "tool": c.Tool, "call": c.Text, "severity": c.Severity},
	}
}

// sarifLevel is error for what is confirmed and grave, note for a mere suspicion of little.
func sarifLevel(c scan.SuspectedCall) string {
	grave := slices.Contains([]string{"high", "critical"}, c.Severity)
	switch {
	case c.Hack && grave:
		return "error"
	case c.Hack, grave:
		return "warning"
	}
	return "note"
}

func physical(file string, line int) sarifPhysical {
	p := sarifPhysical{Artifact: sarifArtifact{fileURI(file)}}
	if line > 0 {
		p.Region = &sarifRegion{line}
	}
	return p
}

// fileURI gives a path as a relative reference, or as a file URI where it is absolute. An entry of an
// archive is a fragment.
func fileURI(file string) string {
	name, entry, _ := strings.Cut(filepath.ToSlash(file), "!")
	u := url.URL{Path: name, Fragment: entry}
	if strings.HasPrefix(name, "/") {
		u.Scheme = "file"
	}
	return u.String()
}

func orText(s, d string) string {
	if s == "" {
		return d
	}
	return s
}
