package tasks

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"proctor/sandbox"
)

// asked is a sandbox with one link and one file, which counts what it is asked.
type asked struct{ stats, reads int }

func (a *asked) Stat(_ context.Context, path string) (sandbox.FileInfo, error) {
	a.stats++
	switch path {
	case "/bin/true", "/usr/bin/true":
		return sandbox.FileInfo{Path: path, Real: "/usr/bin/true"}, nil
	case "/":
		return sandbox.FileInfo{Path: "/", Real: "/"}, nil
	}
	return sandbox.FileInfo{}, fs.ErrNotExist
}

func (a *asked) ReadFile(_ context.Context, _ string, limit int64) ([]byte, error) {
	a.reads++
	return []byte("0123456789")[:min(limit, 10)], nil
}

func (a *asked) Pull(context.Context, string) (io.ReadCloser, error) { return nil, fs.ErrInvalid }

// Each file is asked for once a call, also by the name that a link leads to, and the answers are those of the sandbox.
func TestSeenAsksOnce(t *testing.T) {
	from := &asked{}
	s := newSeen(from)
	for range 3 {
		for _, path := range []string{"/bin/true", "/usr/bin/true"} {
			if got, err := s.Stat(t.Context(), path); err != nil || got.Real != "/usr/bin/true" || got.Path != path {
				t.Errorf("%s: %+v, %v", path, got, err)
			}
		}
		if _, err := s.Stat(t.Context(), "/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		for _, limit := range []int64{1, 4} {
			if got, err := s.ReadFile(t.Context(), "/f", limit); err != nil || int64(len(got)) != limit {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
	if from.stats != 2 || from.reads != 2 {
		t.Errorf("asked %d times for what a path is and %d times for content, want 2 and 2", from.stats, from.reads)
	}
}

// What a cancelled question was answered with is no fact.
func TestSeenKeepsNoCancelledAnswer(t *testing.T) {
	from := &asked{}
	s := newSeen(from)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = s.Stat(ctx, "/bin/true")
	_, _ = s.ReadFile(ctx, "/f", 1)
	if _, err := s.Stat(t.Context(), "/bin/true"); err != nil || from.stats != 2 || len(s.reads) != 0 {
		t.Errorf("%v after %d questions, %d reads kept", err, from.stats, len(s.reads))
	}
}

// Facts for a call say what facts say, and another call's ask anew.
func TestPerCallSaysTheSame(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(true)
	box, own := l.agent(p)
	plain := p.Facts(box)
	call := plain.PerCall()
	ctx := context.Background()
	for _, ref := range []string{"HEAD", "try", "mine", own, "HEAD~1", "release", "v1.4", "--all", "stash@{0}", "nonsense", l.fix} {
		for range 2 {
			if a, b := plain.Ref(ctx, "/w", ref), call.Ref(ctx, "/w", ref); a != b {
				t.Errorf("%s: %s, for the call %s", ref, a, b)
			}
		}
	}
	for _, path := range []string{"/w", "/w/a.py", "/w/new.py", "/w/none/deep", "/", "/etc/passwd"} {
		for range 2 {
			if a, b := plain.Path(ctx, path), call.Path(ctx, path); a != b {
				t.Errorf("%s: %s, for the call %s", path, a, b)
			}
			if a, b := plain.Real(ctx, path), call.Real(ctx, path); a != b {
				t.Errorf("%s leads to %s, for the call to %s", path, a, b)
			}
		}
	}
	gitOut(t, box.Root+"/w", "checkout", "-q", "-f", "main")
	if got := plain.PerCall().Ref(ctx, "/w", "HEAD"); got != RefAncestor {
		t.Errorf("after a checkout HEAD is %s", got)
	}
}
