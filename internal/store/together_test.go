package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// appendFrom appends ordinals 1 to n from each of several writers to rollouts r0, r1, ..., and gives what each
// append was told.
func appendFrom(s *Store, writers, n int, rollout func(writer int) string, doc []byte) map[string][]error {
	told := map[string][]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range n {
				id := rollout(w)
				err := s.AppendModelCall(context.Background(), id, &ModelCall{Ordinal: i + 1, Request: []byte{1}, Doc: doc})
				mu.Lock()
				key := fmt.Sprint(id, "/", i+1)
				told[key] = append(told[key], err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return told
}

// What many append at once is what each was told: all rows there, and of two that want one place exactly one.
func TestAppendTogether(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i := range 40 {
		rollout(t, s, fmt.Sprint("r", i))
	}
	told := appendFrom(s, 80, 25, func(w int) string { return fmt.Sprint("r", w%40) }, []byte("doc"))
	for key, errs := range told {
		done := 0
		for _, err := range errs {
			switch {
			case err == nil:
				done++
			case !errors.Is(err, ErrExists):
				t.Fatalf("%s: %v", key, err)
			}
		}
		if len(errs) != 2 || done != 1 {
			t.Fatalf("%s: told %v, want one done and one taken", key, errs)
		}
	}
	for i := range 40 {
		calls, err := s.ModelCalls(context.Background(), fmt.Sprint("r", i))
		if err != nil || len(calls) != 25 {
			t.Fatalf("r%d has %d model calls: %v", i, len(calls), err)
		}
	}
}

// On a disk that fills up while many append, what was told done is there, and nothing else is.
func TestAppendTogetherOnAFullDisk(t *testing.T) {
	s := open(t, t.TempDir(), Options{MaxPages: 120})
	for i := range 16 {
		rollout(t, s, fmt.Sprint("r", i))
	}
	told := appendFrom(s, 16, 20, func(w int) string { return fmt.Sprint("r", w) }, make([]byte, 3000))
	full := 0
	for i := range 16 {
		id := fmt.Sprint("r", i)
		calls, err := s.ModelCalls(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		there := map[int]bool{}
		for _, c := range calls {
			there[c.Ordinal] = true
		}
		for n := 1; n <= 20; n++ {
			err := told[fmt.Sprint(id, "/", n)][0]
			if (err == nil) != there[n] {
				t.Fatalf("%s, model call %d: told %v, there %t", id, n, err, there[n])
			}
			if errors.Is(err, ErrFull) {
				full++
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if full == 0 {
		t.Error("the disk never was full")
	}
}
