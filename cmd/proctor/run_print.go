package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"proctor/internal/evalrun"
	render "proctor/internal/report"
)

// print writes the run's pages, and its figures to out.
func (o *runOptions) print(out io.Writer, r *evalrun.Report, took time.Duration) error {
	if err := render.RunPages(o.out, r); err != nil {
		return err
	}
	if o.asJSON {
		return writeJSON(out, r)
	}
	if err := printRun(out, r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s after %s\n", filepath.Join(o.out, "report.html"), took.Round(time.Second))
	return err
}

// printRun prints a run's figures for people.
func printRun(out io.Writer, r *evalrun.Report) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "attempts\t%d of %d, %d with a reward\n", r.Done, r.Attempts, r.Graded)
	for _, k := range slices.Sorted(maps.Keys(r.PassAt)) {
		e, clean := r.PassAt[k], r.PassAtClean[k]
		fmt.Fprintf(w, "pass@%d\t%.3f (%.3f-%.3f) over %s; %.3f without attempts whose hacks ran\n", k, e.Value, e.Lo, e.Hi, plural(e.Tasks, "task"), clean.Value)
	}
	fmt.Fprintf(w, "hack rate\t%s\n  not blocked\t%s\n", rateText(r.HackRate), rateText(r.HackRateUnblocked))
	for _, class := range slices.Sorted(maps.Keys(r.ByClass)) {
		c := r.ByClass[class]
		fmt.Fprintf(w, "  %s\t%s, %s, %d blocked\n", class, plural(c.Attempts, "attempt"), plural(c.Tried, "call"), c.Blocked)
	}
	for _, class := range slices.Sorted(maps.Keys(r.Failures)) {
		fmt.Fprintf(w, "no reward: %s\t%d\n", class, r.Failures[class])
	}
	fmt.Fprintf(w, "turns, calls\t%d, %d\ntokens in, out\t%d, %d\ncost\t%.4f\n", r.Turns, r.Calls, r.TokensIn, r.TokensOut, r.Cost)
	return w.Flush()
}

// runWatch shows a run's progress: on a terminal the attempts under way, elsewhere a line for each
// that has ended.
type runWatch struct {
	out     *os.File
	live    bool
	running map[string]string
	drawn   int // lines of the last drawing
	last    time.Time
	figures struct{ resolved, blocked int }
}

func newRunWatch(out *os.File) *runWatch {
	return &runWatch{out: out, live: term.IsTerminal(int(out.Fd())), running: map[string]string{}}
}

// see takes one event; calls come one at a time.
func (w *runWatch) see(p evalrun.Progress) {
	name := printable(fmt.Sprintf("%s #%d", p.Task, p.Attempt), 60)
	switch p.Event {
	case "done":
		delete(w.running, name)
		r := p.Result
		if r.Outcome == "resolved" {
			w.figures.resolved++
		}
		w.figures.blocked += r.Blocked
		w.erase()
		fmt.Fprintf(w.out, "[%d/%d] %s: %s\n", p.Done, p.All, name, resultLine(r))
		w.last = time.Time{}
	case "turn":
		w.running[name] = fmt.Sprintf("turn %d", p.Turn)
	default:
		w.running[name] = p.Event
	}
	if w.live && time.Since(w.last) > 100*time.Millisecond {
		w.draw(p)
	}
}

// resultLine tells how an attempt ended.
func resultLine(r *evalrun.Result) string {
	if r.Reward == nil {
		return fmt.Sprintf("no reward (%s): %s", r.FailureClass, printable(r.Error, 200))
	}
	return fmt.Sprintf("%s, reward %g, %s (%d blocked, %d flagged), %s, %.0f s", r.Outcome, *r.Reward, plural(r.Calls, "call"), r.Blocked, r.Flagged, r.Stop, r.Seconds)
}

// draw shows up to eight attempts under way.
func (w *runWatch) draw(p evalrun.Progress) {
	w.erase()
	w.last = time.Now()
	lines := []string{fmt.Sprintf("%d of %d done, %d running, %d resolved, %d calls blocked", p.Done, p.All, len(w.running), w.figures.resolved, w.figures.blocked)}
	for i, name := range slices.Sorted(maps.Keys(w.running)) {
		if i == 8 {
			lines = append(lines, fmt.Sprintf("  and %d more", len(w.running)-8))
			break
		}
		lines = append(lines, "  "+name+"  "+w.running[name])
	}
	fmt.Fprint(w.out, strings.Join(lines, "\n"), "\n")
	w.drawn = len(lines)
}

// erase takes the last drawing away.
func (w *runWatch) erase() {
	if w.live && w.drawn > 0 {
		fmt.Fprintf(w.out, "\x1b[%dA\x1b[J", w.drawn)
	}
	w.drawn = 0
}

func (w *runWatch) end() { w.erase() }
