package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"proctor/sandbox"
)

// ErrNotAnswered from a Fake's function leaves the call to the built-in commands.
var ErrNotAnswered = errors.New("not answered")

// FakeSession is a sandbox of a Fake. Built in are the commands true, false, exit N, pwd, cd DIR, echo TEXT,
// cat FILE and `sleep` (which ends at once), joined by nothing; any other says "not found" with 127. File
// operations work on its files. Spawned commands get a handle and have ended at the first poll.
// Safe for concurrent use.
type FakeSession struct {
	Spec sandbox.Spec

	engine  *Fake
	id      string
	created time.Time
	serial  sync.Mutex // held during a shell or file call: they queue

	mu      sync.Mutex
	files   map[string][]byte
	undo    map[string][][]byte
	cwd     string
	calls   []sandbox.Call // those that ran, each once
	execs   []sandbox.Exec
	known   map[string]*fakeCall
	handles map[string][]byte
	dead    *sandbox.DeadError
}

// fakeCall is a call that runs or ran.
type fakeCall struct {
	done   chan struct{}
	result sandbox.Result
	err    error
}

var _ sandbox.Session = (*FakeSession)(nil)

func newFakeSession(f *Fake, id string, spec sandbox.Spec) *FakeSession {
	cwd := spec.Workdir
	if cwd == "" {
		cwd = "/"
	}
	return &FakeSession{Spec: spec, engine: f, id: id, created: time.Now(), cwd: cwd,
		files: map[string][]byte{}, undo: map[string][][]byte{}, known: map[string]*fakeCall{}, handles: map[string][]byte{}}
}

// ID is "fake-<n>".
func (s *FakeSession) ID() string { return s.id }

// Calls gives the calls that ran, in order; a retried one is there once.
func (s *FakeSession) Calls() []sandbox.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sandbox.Call(nil), s.calls...)
}

// Execs gives the one-shot commands that ran, in order.
func (s *FakeSession) Execs() []sandbox.Exec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sandbox.Exec(nil), s.execs...)
}

// SetFile writes a file.
func (s *FakeSession) SetFile(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[s.absLocked(name)] = append([]byte(nil), data...)
}

// File gives a file's bytes, or nil.
func (s *FakeSession) File(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[s.absLocked(name)]
}

// Die ends the sandbox; every later call gives the DeadError.
func (s *FakeSession) Die(class, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead == nil {
		s.dead = &sandbox.DeadError{Class: class, Reason: reason}
	}
}

// deadError gives the DeadError of a dead sandbox, or nil.
func (s *FakeSession) deadError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead != nil {
		return s.dead
	}
	return nil
}

// Do makes a call once for each ID.
func (s *FakeSession) Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	if err := s.deadError(); err != nil {
		return sandbox.Result{}, err
	}
	s.mu.Lock()
	known := s.known[call.ID]
	if known == nil {
		known = &fakeCall{done: make(chan struct{})}
		if call.ID != "" {
			s.known[call.ID] = known
		}
		go s.run(context.WithoutCancel(ctx), call, known)
	}
	s.mu.Unlock()
	select {
	case <-known.done:
		return known.result, known.err
	case <-ctx.Done():
		return sandbox.Result{}, ctx.Err()
	}
}

// run answers a call and settles known.
func (s *FakeSession) run(ctx context.Context, call sandbox.Call, known *fakeCall) {
	defer close(known.done)
	if !call.Op.Control() {
		s.serial.Lock()
		defer s.serial.Unlock()
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	started := time.Now()
	if s.engine.OnDo != nil {
		known.result, known.err = s.engine.OnDo(ctx, s, call)
		if !errors.Is(known.err, ErrNotAnswered) {
			return
		}
	}
	known.err = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	output, exit, handle := s.answerLocked(call)
	known.result = sandbox.Result{Output: []byte(output), Exit: exit, Handle: handle, Cwd: s.cwd, Started: started, Duration: time.Since(started)}
}

// State tells what became of a call.
func (s *FakeSession) State(_ context.Context, callID string) (sandbox.CallState, error) {
	s.mu.Lock()
	known := s.known[callID]
	s.mu.Unlock()
	if known == nil {
		return sandbox.CallUnknown, s.deadError()
	}
	select {
	case <-known.done:
		return sandbox.CallDone, s.deadError()
	default:
		return sandbox.CallRunning, s.deadError()
	}
}

// Exec answers with OnExec or a built-in command.
func (s *FakeSession) Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	if err := s.deadError(); err != nil {
		return sandbox.ExecResult{}, err
	}
	s.mu.Lock()
	s.execs = append(s.execs, e)
	s.mu.Unlock()
	if s.engine.OnExec != nil {
		result, err := s.engine.OnExec(ctx, s, e)
		if !errors.Is(err, ErrNotAnswered) {
			return result, err
		}
	}
	if len(e.Argv) == 0 {
		return sandbox.ExecResult{}, fmt.Errorf("%w: no argv", sandbox.ErrStart)
	}
	command := strings.Join(e.Argv, " ")
	if len(e.Argv) == 3 && e.Argv[1] == "-c" {
		command = e.Argv[2]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	output, exit := s.commandLocked(command)
	if exit == 127 && e.Argv[0] == command {
		return sandbox.ExecResult{}, fmt.Errorf("%w: %s: no such program", sandbox.ErrStart, e.Argv[0])
	}
	return sandbox.ExecResult{Stdout: []byte(output), Exit: &exit}, nil
}

// ReadFile gives the head of a file.
func (s *FakeSession) ReadFile(_ context.Context, name string, limit int64) ([]byte, error) {
	if err := s.deadError(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.files[s.absLocked(name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return append([]byte(nil), data[:min(int64(len(data)), limit)]...), nil
}

// Stat describes a file, or a folder that has files below it.
func (s *FakeSession) Stat(_ context.Context, name string) (sandbox.FileInfo, error) {
	if err := s.deadError(); err != nil {
		return sandbox.FileInfo{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.absLocked(name)
	if data, ok := s.files[full]; ok {
		return sandbox.FileInfo{Path: name, Real: full, Mode: 0o644, Size: int64(len(data)), Time: s.created}, nil
	}
	for other := range s.files {
		if full == "/" || strings.HasPrefix(other, full+"/") {
			return sandbox.FileInfo{Path: name, Real: full, Mode: fs.ModeDir | 0o755, Time: s.created}, nil
		}
	}
	return sandbox.FileInfo{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Alive is nil until Die.
func (s *FakeSession) Alive(context.Context) error { return s.deadError() }

// Detach does nothing.
func (s *FakeSession) Detach() error { return nil }

// Close removes the sandbox.
func (s *FakeSession) Close(ctx context.Context) error { return s.engine.Remove(ctx, s.id) }

// absLocked makes name absolute. Preconditions: mu is held, or the session is not shared yet.
func (s *FakeSession) absLocked(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(s.cwd, name)
	}
	return path.Clean(name)
}
