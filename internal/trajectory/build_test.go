package trajectory_test

import (
	"slices"
	"testing"

	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

// Whatever a harness does with its history, the invariants hold, each call is one turn, and what was
// trained is exactly what the agent acted on.
func TestBuildProperties(t *testing.T) {
	for seed := range uint64(150) {
		p := trajtest.Random(seed, 3+int(seed%20))
		segments := trajectory.Build(p.Calls)
		for _, problem := range trajectory.CheckSegments(segments) {
			t.Fatalf("seed %d: %v", seed, problem)
		}
		seen := map[int]bool{}
		for _, s := range segments {
			for i, turn := range s.Turns {
				call := p.Calls[turn.ModelCall-1]
				if seen[turn.ModelCall] {
					t.Fatalf("seed %d: model call %d is two turns", seed, turn.ModelCall)
				}
				seen[turn.ModelCall] = true
				if !slices.Equal(s.Tokens[:turn.Start], call.PromptIDs) || !slices.Equal(s.Tokens[turn.Start:turn.End], call.OutputIDs) {
					t.Fatalf("seed %d: %s turn %d is not what model call %d was", seed, s.ID, i, turn.ModelCall)
				}
				if !slices.Equal(s.Logprobs[turn.Start:turn.End], call.Logprobs) {
					t.Fatalf("seed %d: %s turn %d has other logprobs", seed, s.ID, i)
				}
				want := p.Expect[turn.ModelCall]
				if got := allOnes(s.LossMask[turn.Start:turn.End]); got != want.Trained {
					t.Fatalf("seed %d: model call %d trained %t, want %t", seed, turn.ModelCall, got, want.Trained)
				}
				cause := ""
				if i == 0 {
					cause = s.Cause
				}
				if cause != want.Cause {
					t.Fatalf("seed %d: model call %d begins a segment for cause %q, want %q", seed, turn.ModelCall, cause, want.Cause)
				}
			}
		}
		if len(seen) != len(p.Calls) {
			t.Fatalf("seed %d: %d of %d calls are turns", seed, len(seen), len(p.Calls))
		}
	}
}

func allOnes(mask []int8) bool { return len(mask) > 0 && !slices.Contains(mask, 0) }

// The segments of the first calls do not change when more calls come, but for what superseding and
// summaries say of their last turns: a reader may take them as they are.
func TestBuildGrows(t *testing.T) {
	for seed := range uint64(25) {
		p := trajtest.Random(seed, 12)
		whole := trajectory.Build(p.Calls)
		for n := range p.Calls {
			for i, s := range trajectory.Build(p.Calls[:n]) {
				if !slices.Equal(s.Tokens, whole[i].Tokens[:len(s.Tokens)]) || s.Cause != whole[i].Cause {
					t.Fatalf("seed %d: segment %s of the first %d calls is not a beginning of the whole", seed, s.ID, n)
				}
			}
		}
	}
}

func TestBuildWithoutIDs(t *testing.T) {
	p := trajtest.New(1)
	strip := func(c *trajectory.ModelCall) {
		c.PromptIDs, c.OutputIDs, c.Logprobs, c.TextOnly = nil, nil, nil, "the server gave no prompt_token_ids"
	}
	p.Turn("ls", "a\n", strip)
	p.Turn("ls", "a\n", strip)
	p.Turn("ls", "a\n") // ids from here on: another segment, none of whose prompt trains
	segments := trajectory.Build(p.Calls)
	if len(segments) != 2 || len(segments[0].Turns) != 2 || segments[0].HasTokens() || !segments[1].HasTokens() {
		t.Fatalf("segments %+v", segments)
	}
	for _, problem := range trajectory.CheckSegments(segments) {
		t.Error(problem)
	}
}

func TestUnansweredCallsAreNoTurns(t *testing.T) {
	p := trajtest.New(1)
	p.Turn("ls", "a\n")
	p.Calls = append(p.Calls, &trajectory.ModelCall{Ordinal: 2, Kind: trajectory.KindAction, Messages: p.Messages, Status: 503})
	if got := trajectory.Build(p.Calls); len(got) != 1 || len(got[0].Turns) != 1 {
		t.Errorf("segments %+v", got)
	}
}

func BenchmarkBuild(b *testing.B) {
	p := trajtest.Random(3, 60)
	tokens := 0
	for _, c := range p.Calls {
		tokens += len(c.OutputIDs)
	}
	b.ReportAllocs()
	for range b.N {
		trajectory.Build(p.Calls)
	}
	b.ReportMetric(float64(tokens), "sampled-tokens")
}
