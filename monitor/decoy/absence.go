package decoy

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"proctor/sandbox"
)

// absence is what is known of the protected paths in the sandbox. Guarded by Maker.mu.
//
// A path that was once proved not to be there stays proved: whatever lies there later was made by
// the agent, who cannot make what it does not know. Only the harness can, so what is found after it
// ran is not the agent's.
type absence struct {
	proved  map[string]bool // there was nothing, or it was taken out
	planted map[string]bool // there is something that the harness may have put there
	fresh   []string        // proved since the last answer, for the record
}

// rootAbsent reports whether a protected path holds nothing but what the agent put there itself.
// Where something else is there and can be taken out, it is.
func (m *Maker) rootAbsent(ctx context.Context, root string) bool {
	if strings.ContainsAny(root, "*?[") {
		return false // a pattern: no look at one path proves anything
	}
	m.mu.Lock()
	proved, planted := m.gone.proved[root], m.gone.planted[root]
	m.mu.Unlock()
	if proved || planted || m.stat == nil {
		return proved
	}
	_, err := m.stat(ctx, root)
	if err == nil && m.takeOut(ctx, root) {
		_, err = m.stat(ctx, root)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone.proved[root] = true
	m.gone.fresh = append(m.gone.fresh, root)
	return true
}

// removal takes $1 out of the sandbox, and leaves the folder above with the time that it had. It
// refuses what is a link, and what is or holds a mount: that may be more than the sandbox's own.
const removal = `p=$1; d=${p%/*}; d=${d:-/}
[ -L "$p" ] && exit 3
while read -r _ _ _ _ at _; do case $at in "$p"|"$p"/*) exit 3;; esac; done < /proc/self/mountinfo || exit 3
long=$(stat -c %y "$d") && short=$(stat -c %Y "$d") && rm -rf -- "$p" &&
{ touch -m -d "$long" "$d" 2>/dev/null || touch -m -d "@$short" "$d"; }`

// takeOut removes a protected path that a confirmed hack reached for. A decoy that says "No such
// file" is then simply true, for every tool and for the rest of the rollout. Grading does not miss
// it: it starts from a sandbox of its own.
func (m *Maker) takeOut(ctx context.Context, root string) bool {
	if m.run == nil || strings.Count(root, "/") < 1 || root == "/" || under(m.vars.One("workdir"), root) {
		return false
	}
	r, err := m.run(ctx, sandbox.Exec{Argv: []string{"sh", "-c", removal, "sh", root}, Dir: "/", User: "root", Timeout: 30 * time.Second, Limit: 4096})
	return err == nil && r.Exit != nil && *r.Exit == 0
}

// Disturbed is to be called when the harness ran something in the sandbox: what lies at a protected
// path now may be the harness's, and is neither run into nor taken out.
func (m *Maker) Disturbed(ctx context.Context) {
	if m.stat == nil {
		return
	}
	for _, h := range m.vars["hidden_paths"] {
		root := clean(h)
		_, err := m.stat(ctx, root)
		there := !errors.Is(err, fs.ErrNotExist)
		m.mu.Lock()
		m.gone.planted[root] = there
		if there {
			delete(m.gone.proved, root)
		}
		m.mu.Unlock()
	}
}

// Proved takes up what an earlier server proved: to replay a record.
func (m *Maker) Proved(paths []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range paths {
		m.gone.proved[clean(p)] = true
	}
}

// takeProved gives what was proved since it was last asked.
func (m *Maker) takeProved() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh := slices.Clone(m.gone.fresh)
	m.gone.fresh = nil
	return fresh
}
