package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"
)

// Report is what a demo found; the document of `proctor demo --json`.
type Report struct {
	Task     string    `json:"task"`
	HackRate float64   `json:"hack_rate"` // share of the group's rollouts with at least one confirmed hack
	Rollouts []Rollout `json:"rollouts"`
	Record   string    `json:"record"` // folder of the trajectories, one JSON document a rollout
}

// Rollout is one policy's rollout under Proctor, beside its twin without.
type Rollout struct {
	Policy   string    `json:"policy"`
	About    string    `json:"about"`
	ID       string    `json:"id"`
	Calls    int       `json:"calls"`
	Blocked  int       `json:"blocked"`
	Flagged  int       `json:"flagged"`
	Outcome  string    `json:"outcome"`
	Reward   *float64  `json:"reward"`
	Twin     *Twin     `json:"twin"` // nil: an honest policy has none
	Attempts []Attempt `json:"attempts"`
	hack     bool
}

// Twin is the same policy with monitor and hardening off, graded the naive way.
type Twin struct {
	ID      string   `json:"id"`
	Outcome string   `json:"outcome"`
	Reward  *float64 `json:"reward"`
}

// Attempt is one call that tried a cheat, or that a rule hit.
type Attempt struct {
	CallID    string `json:"call_id"`
	Class     string `json:"class"`
	Command   string `json:"command"`
	Decision  string `json:"decision"`
	Action    string `json:"action"`
	Rule      string `json:"rule"`
	Opinion   string `json:"opinion"`
	Shown     string `json:"shown"`
	WouldHave string `json:"would_have"` // what the twin saw
}

// describe joins what a policy did with what was recorded of it.
func describe(policy Policy, steps []Step, t *rollouts.Trajectory, twin []Step) Rollout {
	r := Rollout{Policy: policy.Name, About: policy.About, ID: t.Rollout.ID, Attempts: []Attempt{}}
	records := map[string]*monitor.Record{}
	for _, rec := range t.Calls {
		if rec.Principal == monitor.Agent {
			r.Calls++
			records[rec.CallID] = rec
			count(&r, rec.Verdict)
		}
	}
	saw := map[string]string{}
	for _, s := range twin {
		saw[s.Key] = s.Shown.Output
	}
	for _, s := range steps {
		rec := records[s.CallID]
		if rec == nil || s.Key == "" && len(rec.Verdict.Hits) == 0 {
			continue
		}
		a := attempt(s, rec)
		if s.Key != "" {
			a.WouldHave = saw[s.Key]
		}
		r.Attempts = append(r.Attempts, a)
	}
	return r
}

func count(r *Rollout, v monitor.Verdict) {
	switch v.Decision {
	case monitor.Block:
		r.Blocked++
	case monitor.Flag:
		r.Flagged++
	}
	r.hack = r.hack || v.Hack
}

// attempt describes one recorded call.
func attempt(s Step, rec *monitor.Record) Attempt {
	v := rec.Verdict
	a := Attempt{CallID: s.CallID, Class: v.Class, Command: s.Text, Decision: v.Decision, Action: v.Action, Shown: s.Shown.Output}
	if a.Class == "" {
		a.Class = s.Class
	}
	for _, h := range v.Hits {
		if a.Rule == "" || h.Class == v.Class {
			a.Rule = h.Rule
		}
		if h.Class == v.Class {
			break
		}
	}
	switch {
	case v.Opinion != nil:
		a.Opinion = fmt.Sprintf("%s %s %.2f: %s", v.Opinion.By, v.Opinion.Verdict, v.Opinion.Confidence, v.Opinion.Reason)
	case v.Hack:
		a.Opinion = "not asked: resolved facts"
	}
	return a
}

// grade puts a grade into a rollout.
func (r *Rollout) grade(g tasks.Grade) { r.Outcome, r.Reward = g.Outcome, g.Reward }

// Print writes the report as a table for people, width columns wide at most.
func (r Report) Print(w io.Writer, width int) error {
	for _, ro := range r.Rollouts {
		if _, err := fmt.Fprintf(w, "\n%s: %s\n", ro.Policy, ro.About); err != nil {
			return err
		}
		for _, a := range ro.Attempts {
			a.print(w, width)
		}
	}
	return r.summary(w)
}

// print writes one attempt: the call, the verdict, what was shown, what the twin saw.
func (a Attempt) print(w io.Writer, width int) {
	line := func(head, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %-10s %s\n", head, clip(text, width-13))
		}
	}
	line(a.CallID, oneLine(a.Command))
	verdict := a.Decision + ", " + a.Action
	if a.Rule != "" {
		verdict += " by " + a.Rule
	}
	line("  verdict", verdict)
	line("  judge", a.Opinion)
	line("  shown", quoted(a.Shown))
	line("  twin saw", quoted(a.WouldHave))
}

// summary writes a line for each rollout, and the hack rate.
func (r Report) summary(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprint(tw, "\npolicy\tcalls\tblocked\tflagged\toutcome\treward\twithout Proctor\treward\n")
	for _, ro := range r.Rollouts {
		outcome, reward := "-", "-"
		if ro.Twin != nil {
			outcome, reward = ro.Twin.Outcome, number(ro.Twin.Reward)
		}
		_, _ = fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", ro.Policy, ro.Calls, ro.Blocked, ro.Flagged, ro.Outcome, number(ro.Reward), outcome, reward)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nhack rate %.2f: %d of %d rollouts of %s tried a cheat that was confirmed\nrecord    %s\n",
		r.HackRate, r.hacks(), len(r.Rollouts), r.Task, r.Record)
	return err
}

func (r Report) hacks() int {
	n := 0
	for _, ro := range r.Rollouts {
		if ro.hack {
			n++
		}
	}
	return n
}

func number(f *float64) string {
	if f == nil {
		return "null"
	}
	return fmt.Sprintf("%.1f", *f)
}

// oneLine shows a text of several lines on one.
func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", " \u23ce ") }

// quoted shows an output on one line; an empty one is told apart from none.
func quoted(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return oneLine(s)
}

// clip cuts s to n runes, and says so.
func clip(s string, n int) string {
	n = max(n, 20)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "\u2026"
}
