package decoy

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"proctor/rules"
	"proctor/sandbox"
)

// Runner runs one argv in the rollout's sandbox, outside the agent's shell. sandbox.Session.Exec.
type Runner func(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error)

// Options is what a Maker is made from.
type Options struct {
	Vars rules.Vars // the task's variables; "workdir" is where relative words start when no cwd is known
	Run  Runner     // nil: wording comes from templates alone
	// Scrubbed says that the repository was proved to hold nothing but ancestors of the start commit
	// when the rollout began.
	Scrubbed bool
	// Absent says that none of the protected paths was there when the agent got the sandbox.
	Absent bool
	// Offline says that nothing but loopback can be reached from the sandbox.
	Offline bool
	// Stat looks at a path of the sandbox by other means than its programs; errors wrap
	// fs.ErrNotExist where nothing is there. sandbox.Session.Stat. Nil: presence cannot be asked.
	Stat func(ctx context.Context, path string) (sandbox.FileInfo, error)
	Rand *rand.Rand // nil: seeded by the runtime; used for delays and for names that exist nowhere
}

// Maker makes the decoys of one rollout and remembers what it denied, so that what was not there
// stays not there. It lives as long as its rollout. Safe for concurrent use.
type Maker struct {
	vars     rules.Vars
	run      Runner
	stat     func(ctx context.Context, path string) (sandbox.FileInfo, error)
	scrubbed bool
	offline  bool

	mu     sync.Mutex
	rand   *rand.Rand
	denied memory
	gone   absence
	gnu    map[string]bool // which programs know the long options of GNU
	traced bool            // the shell traces (set -x): nothing may be spliced
	bent   bool            // the shell shows commands in another way, or words of ours mean something else in it: for good
}

// New gives a Maker with an empty memory.
func New(o Options) *Maker {
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	m := &Maker{vars: o.Vars, run: o.Run, stat: o.Stat, scrubbed: o.Scrubbed, offline: o.Offline, rand: o.Rand, denied: newMemory(),
		gnu: map[string]bool{}, gone: absence{proved: map[string]bool{}, planted: map[string]bool{}}}
	if o.Absent {
		m.Proved(o.Vars["hidden_paths"])
	}
	return m
}

// Answer gives what to show for a blocked call, and remembers what it denies. The same request
// gives the same words and the same command, delays aside.
func (m *Maker) Answer(ctx context.Context, req Request) Answer {
	m.watchShell(req)
	if m.onlyCleanStore(req) {
		return Answer{Family: famClean, Action: actionFiltered, Run: true}
	}
	targets := m.targets(req)
	rest := m.needWords(ctx, req, targets)
	if len(rest) == 0 {
		return m.ownCall(req, targets)
	}
	m.learn(rest)
	out := m.answer(ctx, req, rest)
	out.Absent = m.takeProved()
	return out
}

// Recall gives an answer for a call that policy allows but that touches what was denied before. It
// must see every call of the rollout, since it also learns from them what state the shell is in.
func (m *Maker) Recall(ctx context.Context, req Request) (Answer, bool) {
	m.watchShell(req)
	targets := m.needWords(ctx, req, m.recalled(req))
	if len(targets) == 0 {
		return Answer{}, false
	}
	return m.answer(ctx, req, targets), true
}

// Remember takes up what a blocked call denies, without answering: to replay a record.
func (m *Maker) Remember(req Request) {
	m.watchShell(req)
	if m.onlyCleanStore(req) {
		return // it denies nothing
	}
	m.learn(m.targets(req))
}

// Follow takes up what a call that was not denied did to the shell: to replay a record.
func (m *Maker) Follow(req Request) { m.watchShell(req) }

// learn puts what targets were denied into the memory.
func (m *Maker) learn(targets []target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range targets {
		m.denied.learn(t, m.vars)
	}
}

// answer picks the kind: a file tool's words, a shell call with the offending commands cut out, or
// the whole call answered.
func (m *Maker) answer(ctx context.Context, req Request, targets []target) Answer {
	switch req.Call.Op {
	case sandbox.OpShell, sandbox.OpSpawn:
		return m.answerShell(ctx, req, targets)
	case sandbox.OpInput:
		return Answer{Family: "no-echo", Action: actionDecoyed, Result: sandbox.Result{Handle: req.Call.Handle}, Delay: m.delay("")}
	}
	return m.answerFileTool(req, targets)
}

const (
	actionDecoyed  = "decoyed"
	actionFiltered = "filtered"
)

// answerShell answers a command typed into a shell.
func (m *Maker) answerShell(ctx context.Context, req Request, targets []target) Answer {
	targets = settle(req, targets)
	replies := make([]reply, 0, len(targets))
	for i := range targets {
		r := m.reply(ctx, req, &targets[i])
		replies = append(replies, r)
	}
	family, action := summary(replies)
	out := Answer{Family: family, Action: action, Run: true, Result: merge(replies)}
	out.Delay = m.delay(firstProgram(targets))
	text, ok := m.splice(req, targets, replies, false)
	if !ok || slices.ContainsFunc(targets, guessed) {
		if other, back, safe := m.standIn(ctx, req, targets); safe {
			out.Action, out.Family, out.Command, out.Rewrite, out.Delay, out.Kept = actionDecoyed, famNoFile, other, restoring(back), 0, true
			return out
		}
		text, ok = m.splice(req, targets, replies, true)
	}
	out.Kept = !slices.ContainsFunc(targets, func(t target) bool { return t.cmd != nil && len(t.cmd.Writes) > 0 })
	if ok {
		out.Command = text
		return out
	}
	if action == actionFiltered && m.nothingToFilter(ctx, targets) {
		out.Command = req.Call.Command
		return out
	}
	out.Action, out.Kept = actionDecoyed, false
	if req.Call.Op == sandbox.OpSpawn {
		out.Command = literal(merged(replies), "")
		return out
	}
	shown := out.Result
	out.Command = "(exit " + itoa(*shown.Exit) + ")"
	out.Rewrite = func(r sandbox.Result) sandbox.Result {
		r.Output, r.Truncated = bytes.Clone(shown.Output), false
		r.Exit = shown.Exit
		return r
	}
	return out
}

// nothingToFilter reports whether none of what listings are to leave out exists.
func (m *Maker) nothingToFilter(ctx context.Context, targets []target) bool {
	var paths []string
	for i := range targets {
		paths = append(paths, m.deniedBelow(&targets[i])...)
	}
	return m.run != nil && len(paths) > 0 && m.allGone(ctx, paths)
}

// guessed reports whether a target's words are made up: what code says of a missing file is its own
// affair (it may only ask whether it exists).
func guessed(t target) bool { return t.code != nil || interpreted(&t) }

// summary names what the replies are: the first one's family; filtered only where all of them are.
func summary(replies []reply) (family, action string) {
	family, action = "nothing", actionFiltered
	for i, r := range replies {
		if i == 0 {
			family = r.family
		}
		if r.edit == nil {
			action = actionDecoyed
		}
	}
	return family, action
}

// merged puts replies behind one another, as one.
func merged(replies []reply) reply {
	var out reply
	for _, r := range replies {
		out.stdout = append(out.stdout, r.stdout...)
		out.stderr = append(out.stderr, r.stderr...)
		out.exit = r.exit
	}
	return out
}

// merge gives replies as the result of a call that nothing ran for.
func merge(replies []reply) sandbox.Result {
	var out []byte
	exit := 0
	for _, r := range replies {
		out = append(append(out, r.stdout...), r.stderr...)
		exit = r.exit
	}
	return sandbox.Result{Output: out, Exit: &exit}
}

func firstProgram(targets []target) string {
	for _, t := range targets {
		if t.cmd != nil {
			return t.cmd.Program
		}
	}
	return ""
}
