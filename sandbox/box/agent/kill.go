package agent

import (
	"os"
	"syscall"
	"time"
)

const (
	killFor     = 30 * time.Second // how long a kill goes on before it admits defeat
	freezeAfter = 4                // rounds after which all are stopped first, against fork bombs
	freezeAt    = 24               // processes found in a round from which the next one does
)

// killTree kills all processes of g and comes back when none is left: two scans in a row have to be
// clean, since one may miss a process that forks and exits all the time. foreground makes orphans with
// a foreign tag count as g's. It reports false where some could not be killed in time.
func (t *tagger) killTree(g *group, foreground bool) bool {
	deadline := time.Now().Add(killFor)
	var all map[int]proc
	for round, found, clean := 0, 0, 0; clean < 2; round++ {
		if time.Now().After(deadline) {
			return false
		}
		freeze := found >= freezeAt || found > 0 && round >= freezeAfter
		seen, n := t.killOnce(g, foreground, freeze, all)
		if found = n; !freeze {
			all = seen // in a frozen round all are stopped, by us
		}
		if found == 0 {
			clean++
			continue
		}
		clean = 0
		time.Sleep(time.Duration(min(round, 10)) * time.Millisecond) // they die in their own time
	}
	return true
}

// killOnce gives what it saw and how many of that it killed. before is what was there when nothing was stopped by us.
func (t *tagger) killOnce(g *group, foreground, freeze bool, before map[int]proc) (map[int]proc, int) {
	if freeze && os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGSTOP) // all but ourselves, and no fork slips through
	}
	all, err := scan()
	if err != nil {
		return before, 1 // not known to be clean
	}
	found := 0
	for pid, p := range all {
		if t.belongs(p, g, all, foreground) {
			found++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		} else if freeze && before[pid].state != 'T' {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it was not stopped by its own wish
		}
	}
	return all, found
}

// belongs decides whether p is of g's tree; see the comment at the top of group.go.
func (t *tagger) belongs(p proc, g *group, all map[int]proc, foreground bool) bool {
	if p.dead() || p.pid <= 1 {
		return false
	}
	live, issued := t.known(p.tag)
	switch {
	case p.pid == g.root && !g.own:
		return false
	case p.pid == g.root && !g.ended.Load():
		return true
	case g.others:
		return live == nil
	case !g.isNew(p) || live != nil && live != g:
		return false
	}
	switch g.lineage(p, all) {
	case ofRoot:
		return true
	case ofElder:
		return false // a worker of something older
	default:
		return p.tag == g.tag || foreground && !issued
	}
}

// The ends of a chain of parents.
const (
	orphaned = iota // a child of ours: its line is lost
	ofRoot          // below the group's root
	ofElder         // below something that was there before the group
)

func (g *group) lineage(p proc, all map[int]proc) int {
	for range 1 << 15 { // pids are reused while we read: do not trust a chain to end
		if p.parent == g.root && g.root != 0 && !g.ended.Load() {
			return ofRoot
		}
		parent, ok := all[p.parent]
		if !ok {
			return orphaned
		}
		if !g.isNew(parent) {
			return ofElder
		}
		p = parent
	}
	return orphaned
}
