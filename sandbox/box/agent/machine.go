package agent

import (
	"fmt"
	"os"
	"sync"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

// machine is what a configured agent has.
type machine struct {
	shell    *session
	handles  *handles
	oneshots *oneshots
	files    *files

	mu   sync.Mutex
	line chan struct{} // closed when the last shell call in the queue has ended; nil where there was none
}

// shells are where a shell is looked for, in order of preference.
var shells = []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh", "/usr/bin/sh"}

// newMachine sets a sandbox up and starts its shell.
func newMachine(p *procs, init wire.Init) (*machine, error) {
	who, err := resolveUser(init.User)
	if err != nil {
		return nil, err
	}
	if init.Workdir == "" {
		init.Workdir = "/"
	}
	if init.SpillDir == "" {
		init.SpillDir = "/tmp"
	}
	if err := makeWorkdir(init.Workdir, who); err != nil {
		return nil, err
	}
	writeNames("/etc", init)
	ps, oom := newPipes(), newOOMCounter("/sys/fs/cgroup")
	env := baseEnv(init.Env, who)
	spill := spillFolder{init.SpillDir, who}
	sh := &session{procs: p, pipes: ps, who: who, dirs: []string{init.Workdir, "/"}, spill: spill, oom: oom,
		jobs: newCollector(spill)}
	err = fmt.Errorf("%w: neither bash nor sh is there", sandbox.ErrNoShell)
	for _, sh.path = range shells {
		if _, statErr := os.Stat(sh.path); statErr != nil {
			continue
		}
		if err = sh.open(env); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrNoShell, err)
	}
	return &machine{
		shell:    sh,
		handles:  &handles{procs: p, pipes: ps, shell: sh, oom: oom, byID: map[string]*handle{}},
		oneshots: &oneshots{procs: p, pipes: ps, oom: oom, workdir: init.Workdir, given: init.Env, who: who, env: env},
		files:    newFiles(init.Workdir, who),
	}, nil
}

// makeWorkdir makes the folder if it is not there, the user's own.
func makeWorkdir(dir string, who identity) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the workdir: %w", err)
	}
	return os.Chown(dir, int(who.uid), int(who.gid))
}

// do gives what makes a call. A shell call has its place in the queue when do comes back.
func (m *machine) do(call sandbox.Call) func() wire.Frame {
	var f func(sandbox.Call) sandbox.Result
	switch call.Op {
	case sandbox.OpShell:
		f = m.shell.run
	case sandbox.OpSpawn:
		f = m.handles.spawn
	case sandbox.OpOutput:
		f = m.handles.output
	case sandbox.OpInput:
		f = m.handles.input
	case sandbox.OpKill:
		f = m.handles.kill
	default:
		f = m.files.do
	}
	reply := func() wire.Frame { return wire.Frame{Kind: wire.KindReply, Payload: wire.EncodeResult(f(call))} }
	if call.Op != sandbox.OpShell {
		return reply
	}
	m.mu.Lock()
	before, mine := m.line, make(chan struct{})
	m.line = mine
	m.mu.Unlock()
	return func() wire.Frame {
		if before != nil {
			<-before
		}
		defer close(mine)
		t := <-m.shell.turn
		defer func() { m.shell.turn <- t }()
		return reply()
	}
}

// exec gives what runs a one-shot command.
func (m *machine) exec(x sandbox.Exec) func() wire.Frame {
	return func() wire.Frame {
		res, err := m.oneshots.run(x)
		return replied(wire.EncodeExecResult(res), err)
	}
}
