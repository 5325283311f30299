package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func open(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func intent(n int, key string) *Call {
	return &Call{Ordinal: n, Principal: "agent", Key: key, Fingerprint: "f", BoxID: fmt.Sprintf("c%d", n), Intent: []byte(`{"n":1}`)}
}

// rollout adds rollouts for calls to belong to.
func rollout(t testing.TB, s *Store, ids ...string) *Store {
	t.Helper()
	for _, id := range ids {
		r := &Rollout{ID: id, TaskID: "t", Status: "running", TokenHash: []byte{1}, Doc: []byte("{}"), CreatedAt: time.Now()}
		if err := s.InsertRollout(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestCallsAreKeptInOrderWithTheirOutcomes(t *testing.T) {
	ctx, s := context.Background(), rollout(t, open(t, t.TempDir(), Options{}), "r1", "r2")
	command := "ls -A"
	first := intent(1, "k1")
	first.BoxCommand = &command
	second := intent(2, "")
	for _, c := range []*Call{first, second} {
		if err := s.AppendIntent(ctx, "r1", c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendIntent(ctx, "r2", intent(1, "k1")); err != nil {
		t.Fatalf("another rollout has keys and ordinals of its own: %v", err)
	}
	first.Done, first.Event, first.Cwd, first.Outcome = true, 7, "/tmp", []byte(`{"x":2}`)
	if err := s.AppendOutcome(ctx, "r1", first); err != nil {
		t.Fatal(err)
	}
	calls, err := s.Calls(ctx, "r1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*Call{first, second}, calls); diff != "" {
		t.Errorf("calls differ (-want +got):\n%s", diff)
	}
	byKey, err := s.CallByKey(ctx, "r1", "agent", "k1")
	if err != nil || cmp.Diff(first, byKey) != "" {
		t.Errorf("CallByKey = %+v, %v", byKey, err)
	}
	for name, find := range map[string]func() (*Call, error){
		"another principal's key": func() (*Call, error) { return s.CallByKey(ctx, "r1", "harness", "k1") },
		"an empty key":            func() (*Call, error) { return s.CallByKey(ctx, "r1", "agent", "") },
		"no such rollout":         func() (*Call, error) { return s.CallByOrdinal(ctx, "r3", 1) },
		"an ordinal out of range": func() (*Call, error) { return s.CallByOrdinal(ctx, "r1", MaxOrdinal+2) },
		"an ordinal not given":    func() (*Call, error) { return s.CallByOrdinal(ctx, "r1", 3) },
	} {
		if _, err := find(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	after, err := s.CallsAfter(ctx, "r1", 6, 10)
	if err != nil || len(after) != 1 || after[0].Ordinal != 1 {
		t.Errorf("CallsAfter(6) = %v, %v; want the first call", after, err)
	}
	if after, _ = s.CallsAfter(ctx, "r1", 7, 10); len(after) != 0 {
		t.Errorf("CallsAfter(7) = %v, want none", after)
	}
}

func TestTheRecordIsAppendOnly(t *testing.T) {
	ctx, s := context.Background(), rollout(t, open(t, t.TempDir(), Options{}), "r")
	if err := s.AppendIntent(ctx, "r", intent(1, "k")); err != nil {
		t.Fatal(err)
	}
	done := intent(1, "k")
	done.Outcome = []byte(`{}`)
	if err := s.AppendOutcome(ctx, "r", done); err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]func() error{
		"an ordinal": func() error { return s.AppendIntent(ctx, "r", intent(1, "other")) },
		"an outcome": func() error { return s.AppendOutcome(ctx, "r", done) },
		"an event number": func() error {
			_ = s.AppendEvent(ctx, "r", Event{1, []byte(`1`)})
			return s.AppendEvent(ctx, "r", Event{1, []byte(`2`)})
		},
	} {
		if err := again(); !errors.Is(err, ErrExists) {
			t.Errorf("%s twice: %v, want ErrExists", name, err)
		}
	}
}

func TestAppendsOutliveACallerThatLeft(t *testing.T) {
	s := rollout(t, open(t, t.TempDir(), Options{}), "r")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.AppendIntent(gone, "r", intent(1, "")); err != nil {
		t.Fatal(err)
	}
}

func TestRolloutsAreListedNewestFirstByFilterAndPage(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), Options{})
	at := time.Unix(100, 5).UTC()
	for i, r := range []Rollout{
		{ID: "a", TaskID: "t1", GroupID: "g", Status: "running", Policy: "p"},
		{ID: "b", TaskID: "t2", GroupID: "g", Status: "graded", Policy: "p"},
		{ID: "c", TaskID: "t1", Status: "running", Policy: "q"},
	} {
		r.CreatedAt, r.TokenHash, r.Doc, r.Box = at, []byte{byte(i)}, []byte("{}"), "box-"+r.ID
		if err := s.InsertRollout(ctx, &r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "c b a"}, {Filter{Limit: 2}, "c b"}, {Filter{Before: 3}, "b a"}, {Filter{Before: 2, Limit: 5}, "a"},
		{Filter{TaskID: "t1"}, "c a"}, {Filter{GroupID: "g"}, "b a"}, {Filter{Policy: "p", TaskID: "t1"}, "a"},
		{Filter{Statuses: []string{"running"}}, "c a"}, {Filter{Statuses: []string{"graded", "running"}, GroupID: "g"}, "b a"},
		{Filter{TaskID: "none"}, ""},
	} {
		rows, err := s.Rollouts(ctx, c.f)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("Rollouts(%+v) = %q, want %q", c.f, got, c.want)
		}
	}
	b, err := s.RolloutByID(ctx, "b")
	if err != nil || !b.CreatedAt.Equal(at) || b.Box != "box-b" {
		t.Errorf("RolloutByID(b) = %+v, %v", b, err)
	}
	b.Status, b.TokenHash = "deleted", []byte{}
	if err := s.UpdateRollout(ctx, b); err != nil {
		t.Fatal(err)
	}
	if b, err = s.RolloutByID(ctx, "b"); err != nil || b.Status != "deleted" || len(b.TokenHash) != 0 {
		t.Errorf("after the update: %+v, %v", b, err)
	}
	if err := s.InsertRollout(ctx, &Rollout{ID: "a", TaskID: "t", Status: "s", TokenHash: []byte{1}, Doc: []byte{}}); !errors.Is(err, ErrExists) {
		t.Errorf("the same id twice: %v, want ErrExists", err)
	}
}

func TestAKeyIsClaimedOnce(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), Options{})
	var wins sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			k, claimed, err := s.ClaimKey(ctx, Key{Scope: "rollout", Key: []byte("k"), Hash: "h", Target: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
			}
			if claimed {
				wins.Store(k.Target, true)
			}
		})
	}
	wg.Wait()
	n := 0
	wins.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d of 8 claims won, want 1", n)
	}
	have, claimed, err := s.ClaimKey(ctx, Key{Scope: "rollout", Key: []byte("k"), Hash: "other", Target: "x"})
	if err != nil || claimed || have.Hash != "h" {
		t.Errorf("a second claim: %+v, %v, %v; want the first one's hash", have, claimed, err)
	}
	if err := s.DropKey(ctx, have.Target); err != nil {
		t.Fatal(err)
	}
	if _, claimed, _ = s.ClaimKey(ctx, Key{Scope: "rollout", Key: []byte("k"), Hash: "h", Target: "y"}); !claimed {
		t.Error("a dropped key cannot be claimed again")
	}
}

func TestDocumentsComeBack(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), Options{})
	for name, doc := range map[string]struct {
		put func([]byte) error
		get func() ([]byte, error)
	}{
		"grade": {func(b []byte) error { return s.PutGrade(ctx, "r", b) }, func() ([]byte, error) { return s.Grade(ctx, "r") }},
		"patch": {func(b []byte) error { return s.PutPatch(ctx, "r", b) }, func() ([]byte, error) { return s.Patch(ctx, "r") }},
		"image": {func(b []byte) error { return s.PutImage(ctx, "k", b) }, func() ([]byte, error) { return s.Image(ctx, "k") }},
		"meta":  {func(b []byte) error { return s.SetMeta(ctx, "m", b) }, func() ([]byte, error) { return s.Meta(ctx, "m") }},
		"review": {func(b []byte) error { return s.PutReview(ctx, "r", 3, b) }, func() ([]byte, error) {
			all, err := s.Reviews(ctx, "r")
			if err == nil && all[3] == nil {
				err = ErrNotFound
			}
			return all[3], err
		}},
	} {
		if _, err := doc.get(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s before: %v, want ErrNotFound", name, err)
		}
		for _, text := range []string{"one", "two\x00\xff"} {
			if err := doc.put([]byte(text)); err != nil {
				t.Fatal(name, err)
			}
			if got, err := doc.get(); err != nil || string(got) != text {
				t.Errorf("%s = %q, %v; want %q", name, got, err, text)
			}
		}
		// An empty document is one, whether it comes as nil or not: the patch of work that changed nothing.
		for _, empty := range [][]byte{nil, {}} {
			if err := doc.put(empty); err != nil {
				t.Errorf("%s: an empty document (nil: %v): %v", name, empty == nil, err)
			}
			if got, err := doc.get(); (err != nil && name != "review") || len(got) != 0 {
				t.Errorf("%s: an empty document came back as %q, %v", name, got, err)
			}
		}
	}
}

func TestTheFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	_, err := Open(context.Background(), dir, Options{})
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("a second server: %v, want ErrLocked", err)
	}
	for _, want := range []string{dir, fmt.Sprint(os.Getpid()), "--data"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q does not name %q", err, want)
		}
	}
	owner := s.Owner()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, Options{})
	if again.Owner() != owner || len(owner) < 8 {
		t.Errorf("the owner changed from %q to %q", owner, again.Owner())
	}
}

// TestNothingIsLostWithoutClose opens a copy of the files as they are while the store is open: what
// a SIGKILL leaves.
func TestNothingIsLostWithoutClose(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := rollout(t, open(t, dir, Options{}), "r")
	for i := range 500 {
		if err := s.AppendIntent(ctx, "r", intent(i+1, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	left := t.TempDir()
	for _, name := range []string{"proctor.db", "proctor.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(left, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	calls, err := open(t, left, Options{}).Calls(ctx, "r")
	if err != nil || len(calls) != 500 {
		t.Errorf("%d calls are left, %v; want 500", len(calls), err)
	}
}

func TestReadersSeeEachFinishedWrite(t *testing.T) {
	ctx, s := context.Background(), rollout(t, open(t, t.TempDir(), Options{}), "r0", "r1", "r2", "r3")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rollout := fmt.Sprint("r", w)
			for i := range 50 {
				if err := s.AppendIntent(ctx, rollout, intent(i+1, "")); err != nil {
					t.Error(err)
					return
				}
				if _, err := s.CallByOrdinal(ctx, rollout, i+1); err != nil {
					t.Errorf("call %d of %s right after its write: %v", i+1, rollout, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
