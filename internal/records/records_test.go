package records_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"proctor/internal/records"
	"proctor/internal/store"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

func open(t testing.TB, ids ...string) (*records.Service, *store.Store) {
	t.Helper()
	st, err := store.Open(context.Background(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, id := range ids {
		row := &store.Rollout{ID: id, TaskID: "t", Status: "running", TokenHash: []byte{1}, CreatedAt: time.Now(), Doc: []byte("{}")}
		if err := st.InsertRollout(context.Background(), row); err != nil {
			t.Fatal(err)
		}
	}
	return fresh(t, st), st
}

func fresh(t testing.TB, st *store.Store) *records.Service {
	t.Helper()
	s, err := records.New(st)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is appended comes back as it was, whatever was left out on the way and through restarts.
func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(12) {
		id := fmt.Sprint("r", seed)
		s, st := open(t, id)
		p := trajtest.Random(seed, 14)
		for i, c := range p.Calls {
			c.Tools = json.RawMessage(fmt.Sprintf(`[{"n":%d}]`, i%2))
			if i == 7 {
				s = fresh(t, st)
			}
			key := ""
			if i%3 == 0 {
				key = fmt.Sprint("k", i)
			}
			given := *c
			if err := s.Append(ctx, id, key, sha256.Sum256([]byte{byte(i)}), &given); err != nil {
				t.Fatal(err)
			}
			if given.Ordinal != i+1 {
				t.Fatalf("call %d is given ordinal %d", i+1, given.Ordinal)
			}
		}
		got, err := fresh(t, st).Calls(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range p.Calls {
			want, err1 := json.Marshal(c)
			have, err2 := json.Marshal(got[i])
			if err1 != nil || err2 != nil || string(want) != string(have) {
				t.Fatalf("seed %d: call %d comes back as\n%s\nnot\n%s", seed, i+1, have, want)
			}
		}
		known, ok, err := fresh(t, st).ByKey(ctx, id, "k3")
		if err != nil || !ok || known.Ordinal != 4 || known.Request != sha256.Sum256([]byte{3}) {
			t.Errorf("under a key: %+v %t %v", known, ok, err)
		}
	}
}

// A conversation of n turns is stored as what it says once.
func TestStoredOnce(t *testing.T) {
	ctx := context.Background()
	s, st := open(t, "r")
	p := trajtest.New(1)
	whole := 0
	for i := range 80 {
		c, _ := p.Turn(fmt.Sprintf("command number %d", i), fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i)})))
		whole += 4 * len(c.PromptIDs)
		if err := s.Append(ctx, "r", "", [32]byte{}, c); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := st.ModelCalls(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, r := range rows {
		stored += len(r.Doc)
	}
	if stored*8 > whole {
		t.Errorf("%d bytes are stored of prompts that hold %d", stored, whole)
	}
}

func upload(ids ...int32) *trajectory.Segment {
	s := &trajectory.Segment{ID: "a", Tokens: ids}
	for i := range ids {
		s.Logprobs = append(s.Logprobs, -float64(min(i, 1)))
		s.ActionMask, s.LossMask = append(s.ActionMask, int8(min(i, 1))), append(s.LossMask, int8(min(i, 1)))
	}
	return s
}

func TestUpload(t *testing.T) {
	ctx := context.Background()
	s, st := open(t, "r", "g")
	for range 2 { // the second time it is there already
		if n, err := s.Upload(ctx, "r", []*trajectory.Segment{upload(1, 2, 3)}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	if _, err := s.Upload(ctx, "r", []*trajectory.Segment{upload(1, 2, 4)}); !errors.Is(err, records.ErrUploaded) {
		t.Errorf("another segment in its place: %v", err)
	}
	next := upload(9, 8, 7, 6)
	next.ID, next.Order, next.Cause = "b", 1, "compaction"
	parent := "a"
	next.Parent = &parent
	if n, err := s.Upload(ctx, "r", []*trajectory.Segment{next}); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	got, calls, err := fresh(t, st).Segments(ctx, "r")
	if err != nil || len(got) != 2 || calls != nil {
		t.Fatal(got, calls, err)
	}
	if got[0].NAfter != 3 || got[1].NAction != 3 || got[0].Turns[0].End != 3 {
		t.Errorf("segments %+v %+v", got[0], got[1])
	}
	if problems := trajectory.CheckSegments(got); len(problems) > 0 {
		t.Error(problems)
	}
	bad := upload(5, 5)
	bad.Logprobs = bad.Logprobs[:1]
	var field *trajectory.FieldError
	if _, err := s.Upload(ctx, "g", []*trajectory.Segment{bad}); !errors.As(err, &field) || field.Field != "segments[0].logprobs" {
		t.Errorf("unequal arrays: %v", err)
	}
	if _, err := s.Upload(ctx, "g", []*trajectory.Segment{nil}); !errors.As(err, &field) {
		t.Errorf("null: %v", err)
	}
	call := &trajectory.ModelCall{Kind: "action", Output: json.RawMessage(`{}`)}
	if err := s.Append(ctx, "r", "", [32]byte{}, call); !errors.Is(err, records.ErrUploaded) {
		t.Errorf("a model call beside an upload: %v", err)
	}
	if err := s.Append(ctx, "g", "", [32]byte{}, call); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Upload(ctx, "g", []*trajectory.Segment{upload(1, 2)}); !errors.Is(err, records.ErrGateway) {
		t.Errorf("an upload beside model calls: %v", err)
	}
}

// BenchmarkAppend is the append of a model call to one of 2,000 open rollouts, from 64 writers.
func BenchmarkAppend(b *testing.B) {
	const rollouts = 2000
	ids := make([]string, rollouts)
	for i := range ids {
		ids[i] = fmt.Sprint("r", i)
	}
	s, _ := open(b, ids...)
	measureAppends(b, s, ids)
}

// BenchmarkAppendPaced is the append to one of 2,000 open rollouts whose models each answer every five seconds: 400
// appends a second, whatever the ones before took. What a caller waits is what it would wait there.
func BenchmarkAppendPaced(b *testing.B) {
	const rollouts = 2000
	ids := make([]string, rollouts)
	for i := range ids {
		ids[i] = fmt.Sprint("r", i)
	}
	s, _ := open(b, ids...)
	pacedAppends(b, s, ids, 400)
}
