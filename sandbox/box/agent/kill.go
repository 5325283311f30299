package agent

import (
	"os"
	"syscall"
	"time"
)

const (
	killFor     = 30 * time.Second // how long a kill goes on before it admits defeat
	freezeAfter = 6                // rounds after which all are stopped first, against fork bombs
)

// killTree kills all processes of g and comes back when none is left: two scans in a row have to be
// clean, since one may miss a process that forks and exits all the time. foreground makes orphans with
// a foreign tag count as g's. It reports false where some could not be killed in time.
func (t *tagger) killTree(g *group, foreground bool) bool {
	deadline := time.Now().Add(killFor)
	for round, clean := 0, 0; clean < 2; round++ {
		if time.Now().After(deadline) {
			return false
		}
		frozen := round >= freezeAfter && clean == 0
		if t.killOnce(g, foreground, frozen) == 0 {
			clean++
			continue
		}
		clean = 0
		time.Sleep(time.Duration(min(round, 10)) * time.Millisecond) // they die in their own time
	}
	return true
}

// killOnce gives how many processes it found.
func (t *tagger) killOnce(g *group, foreground, freeze bool) int {
	var before map[int]proc
	if freeze && os.Getpid() == 1 {
		before, _ = scan()
		_ = syscall.Kill(-1, syscall.SIGSTOP) // all but ourselves, and no fork slips through
	}
	all, err := scan()
	if err != nil {
		return 1 // not known to be clean
	}
	found := 0
	for pid, p := range all {
		if !t.belongs(p, g, all, foreground) {
			if b, seen := before[pid]; seen && b.state != 'T' {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			continue
		}
		found++
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return found
}

// belongs decides whether p is of g's tree; see the comment at the top of group.go.
func (t *tagger) belongs(p proc, g *group, all map[int]proc, foreground bool) bool {
	if p.dead() || p.pid <= 1 {
		return false
	}
	if p.pid == g.root {
		return g.own
	}
	live, issued := t.known(p.tag)
	if g.others {
		return live == nil
	}
	if !g.isNew(p) {
		return false
	}
	if p.tag == g.tag {
		return true
	}
	if live != nil && live != g {
		return false
	}
	for q, hops := p, 0; hops < 1<<15; hops++ {
		if q.parent == g.root && g.root != 0 {
			return true
		}
		parent, ok := all[q.parent]
		if !ok { // an orphan, now a child of ours
			return foreground && !issued
		}
		if !g.isNew(parent) {
			return false // a worker of something older
		}
		q = parent
	}
	return false
}
