package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

//go:embed bench_swerex.py
var swerexScript string

// swerexPeer is SWE-ReX in a Python of the user's, on the host, for the benchmark to hold calls against.
type swerexPeer struct {
	child *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	words bytes.Buffer
}

// swerexProbes are the calls that the script knows, and what they are.
var swerexProbes = []struct{ name, what string }{
	{"session", "SWE-ReX's session, local"},
	{"http_session", "SWE-ReX's session over HTTP"},
	{"http_execute", "SWE-ReX's one-shot over HTTP"},
}

// startSWEReX starts it; python is one that has swe-rex and aiohttp.
func startSWEReX(ctx context.Context, python string) (*swerexPeer, error) {
	p := &swerexPeer{child: exec.CommandContext(ctx, python, "-c", swerexScript)} //nolint:gosec // the user's own
	p.child.Stderr = &p.words
	var err error
	if p.in, err = p.child.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.child.Start(); err != nil {
		return nil, fmt.Errorf("SWE-ReX: %w", err)
	}
	if err := p.expect("ready"); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// call makes one call of a probe that the script knows.
func (p *swerexPeer) call(name string) error {
	if _, err := io.WriteString(p.in, name+"\n"); err != nil {
		return fmt.Errorf("SWE-ReX: %w", err)
	}
	return p.expect("ok")
}

// expect reads a line, which has to be want.
func (p *swerexPeer) expect(want string) error {
	for {
		line, err := p.out.ReadString('\n')
		switch {
		case err != nil:
			p.stop() // its last words have then come
			return fmt.Errorf("SWE-ReX: it ended; does that Python have swe-rex and aiohttp? %s", strings.TrimSpace(p.words.String()))
		case strings.TrimSpace(line) == want:
			return nil
		case strings.HasPrefix(line, "exit "):
			return fmt.Errorf("SWE-ReX: a command's %s", strings.TrimSpace(line))
		} // anything else is chatter
	}
}

// stop ends it and its server.
func (p *swerexPeer) stop() {
	_ = p.in.Close() // its loop ends
	_ = p.child.Wait()
}

// probes are its calls, as the benchmark names them.
func (p *swerexPeer) probes() []probe {
	var all []probe
	for _, known := range swerexProbes {
		all = append(all, probe{"swerex_" + known.name, func(context.Context, int) error { return p.call(known.name) }})
	}
	return all
}
