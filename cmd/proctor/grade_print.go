package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"proctor/tasks"
	"proctor/tasks/grading/predictions"
)

// gradeSummary is what grade prints.
type gradeSummary struct {
	Rows     int                              `json:"rows"`
	Resolved int                              `json:"resolved"`
	Outcomes map[string]int                   `json:"outcomes"` // graded rows by outcome
	Classes  map[string]int                   `json:"classes"`  // rows without a grade by class
	Known    int                              `json:"known"`    // taken from the journal
	Models   map[string]predictions.RunReport `json:"models"`   // the harness's reports
	Results  []predictions.Result             `json:"results"`
	problems int
}

func summarise(reports map[string]predictions.RunReport, results []predictions.Result, problems int) gradeSummary {
	s := gradeSummary{Rows: len(results), Outcomes: map[string]int{}, Classes: map[string]int{}, Models: reports, Results: results, problems: problems}
	if s.Results == nil {
		s.Results = []predictions.Result{}
	}
	for _, r := range results {
		switch {
		case r.Grade == nil:
			s.Classes[r.Class]++
		default:
			s.Outcomes[r.Grade.Outcome]++
			if r.Known {
				s.Known++
			}
		}
	}
	s.Resolved = s.Outcomes[tasks.Resolved]
	slices.SortFunc(s.Results, func(a, b predictions.Result) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.Place, b.Place))
	})
	return s
}

func (o *gradeOptions) print(w io.Writer, s gradeSummary) error {
	if o.asJSON {
		return writeJSON(w, s)
	}
	for _, r := range s.Results {
		detail := ""
		if g := r.Grade; g != nil {
			detail = gradeDetail(r)
		} else {
			detail = r.Error
		}
		if _, err := fmt.Fprintf(w, "%-13s %s  %s%s\n", outcomeOf(r), orNone(r.InstanceID), orNone(r.Model), prefixed("  ", detail)); err != nil {
			return err
		}
	}
	for _, model := range sortedKeys(s.Models) {
		r := s.Models[model]
		if _, err := fmt.Fprintf(w, "%s: %d of %d resolved, %d unresolved, %d without a patch, %d errors, %d not predicted\n",
			model, r.Resolved, r.Total, r.Unresolved, r.EmptyPatch, r.Errors, len(r.IncompleteIDs)); err != nil {
			return err
		}
	}
	return nil
}

// gradeDetail gives a grade in a few words.
func gradeDetail(r predictions.Result) string {
	g := r.Grade
	f2p, p2p := g.Tests.FailToPass, g.Tests.PassToPass
	text := ""
	if g.Outcome == tasks.Resolved || g.Outcome == tasks.Unresolved || g.Outcome == tasks.Tampered {
		text = fmt.Sprintf("%d/%d fail_to_pass, %d/%d pass_to_pass", len(f2p.Passed), len(f2p.Passed)+len(f2p.Failed), len(p2p.Passed), len(p2p.Passed)+len(p2p.Failed))
	} else if len(g.Notes) > 0 {
		text = g.Notes[len(g.Notes)-1]
	}
	if g.Review != nil && g.Review.Verdict != "benign" {
		text += fmt.Sprintf("; review: %s %s", g.Review.Verdict, g.Review.Class)
	}
	if r.Known {
		text += "; known"
	}
	return text
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// verdict turns a run into the exit status: bad rows and task files before trouble of the machine before
// patches that are not resolved.
func (s gradeSummary) verdict() error {
	bad := 0
	for _, n := range s.Classes {
		bad += n
	}
	switch broken := s.Outcomes[tasks.InfraFailure]; {
	case bad > 0:
		return usage(fmt.Errorf("%d of %s could not be graded as they are; see above", bad, plural(s.Rows, "row")))
	case s.problems > 0:
		return usage(fmt.Errorf("%s in the task files; see above", plural(s.problems, "problem")))
	case s.Rows == 0:
		return usage(fmt.Errorf("no prediction was read"))
	case broken > 0:
		return infra(fmt.Errorf("%d of %s could not be graded on this machine", broken, plural(s.Rows, "prediction")))
	case s.Resolved < s.Rows:
		return failed(fmt.Errorf("%d of %s not resolved", s.Rows-s.Resolved, plural(s.Rows, "prediction")))
	}
	return nil
}
