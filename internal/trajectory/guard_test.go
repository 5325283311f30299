package trajectory_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

// rec gives the record of a bash call.
func rec(n int, id, command, decision string) trajectory.ToolRecord {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	r := trajectory.ToolRecord{Ordinal: n, CallID: id, Name: "bash", Arguments: args, Decision: decision, Action: "executed", Agent: true, Shown: true}
	if decision == "block" {
		r.Action, r.Rule, r.Hits, r.Output = "decoyed", "core/x", 1, "No such file or directory\n"
	}
	return r
}

func TestSpans(t *testing.T) {
	p := trajtest.New(1)
	_, a := p.Turn("ls", "x\n")
	_, b := p.Turn("cat .eval/x", "No such file or directory\n")
	p.Turn("make", "ok\n")
	segments := trajectory.Build(p.Calls)
	spans := trajectory.Spans(segments, p.Calls, []trajectory.ToolRecord{
		rec(1, a, "ls", "allow"), rec(2, b, "cat .eval/x", "block"), rec(3, "", "make", "flag"),
		{Ordinal: 4, Name: "exec", Decision: "allow"}, rec(5, "", "never said", "block"),
	})
	if len(spans) != 3 {
		t.Fatalf("spans %+v", spans)
	}
	s := segments[0]
	turn, next := s.Turns[1], s.Turns[2]
	if g := spans[0]; g.Joined != "call_id" || g.Turn != 1 || g.Start != turn.Start || g.End != turn.End || g.ObsStart != turn.End || g.ObsEnd != next.Start || g.ModelCall != 2 {
		t.Errorf("span %+v of turn %+v", g, turn)
	}
	if want := trajtest.Answer(p.Calls[1].Output); !slices.Equal(s.Tokens[spans[0].Start:spans[0].End], want) {
		t.Error("the span is not the turn's tokens")
	}
	if g := spans[1]; g.Joined != "arguments" || g.Turn != 2 {
		t.Errorf("span %+v, want it joined by arguments", g)
	}
	if g := spans[2]; g.Joined != "" || g.Turn != -1 {
		t.Errorf("span %+v of a call that no turn made", g)
	}
	if !slices.Equal(s.BlockedTurns, []int{1}) {
		t.Errorf("blocked turns %v", s.BlockedTurns)
	}
}

// Ids that repeat are used up in order, and commands in plain text are found in the turns that say them.
func TestSpansOfOddAgents(t *testing.T) {
	p := trajtest.New(1)
	for _, command := range []string{"ls", "cat .eval/x", "ls"} {
		raw, id := p.Bash("", command)
		raw = bytes.Replace(raw, []byte(id), []byte("c"), 1)
		p.Sample(raw)
		p.Take(raw, "c", "out\n")
	}
	segments := trajectory.Build(p.Calls)
	spans := trajectory.Spans(segments, p.Calls, []trajectory.ToolRecord{rec(1, "c", "ls", "allow"), rec(2, "c", "cat .eval/x", "block"), rec(3, "c", "ls", "block")})
	if len(spans) != 2 || spans[0].Turn != 1 || spans[1].Turn != 2 {
		t.Errorf("spans %+v", spans)
	}
	q := trajtest.New(1)
	for _, command := range []string{"ls -la", "cat .eval/x"} {
		answer := trajtest.Msg("assistant", "I run\n```bash\n"+command+"\n```")
		q.Sample(answer)
		q.Messages = append(q.Messages, answer, trajtest.Msg("user", "out"))
	}
	segments = trajectory.Build(q.Calls)
	spans = trajectory.Spans(segments, q.Calls, []trajectory.ToolRecord{rec(1, "", "ls -la", "allow"), rec(2, "", "cat .eval/x", "block")})
	if len(spans) != 1 || spans[0].Joined != "text" || spans[0].Turn != 1 {
		t.Errorf("spans %+v", spans)
	}
}

func TestBlockPolicies(t *testing.T) {
	for _, text := range []string{"odd", "keep:1", "penalty:x", "penalty:NaN", "mask:-1"} {
		if _, err := trajectory.ParseBlockPolicy(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for seed := range uint64(60) {
		p := trajtest.Random(seed, 10)
		segments := trajectory.Build(p.Calls)
		var records []trajectory.ToolRecord
		for _, c := range p.Calls {
			m, err := trajectory.ParseMessage(c.Output)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range m.ToolCalls {
				decision := "allow"
				if c.Ordinal%3 == 0 {
					decision = "block"
				}
				if !c.Disconnected {
					records = append(records, rec(len(records)+1, call.ID, "x", decision))
				}
			}
		}
		spans := trajectory.Spans(segments, p.Calls, records)
		before, err := json.Marshal(segments)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"keep", "mask", "penalty:-0.5", "reject"} {
			policy, err := trajectory.ParseBlockPolicy(text)
			if err != nil || policy.String() != text {
				t.Fatalf("%q is read as %q: %v", text, policy, err)
			}
			out, ok := policy.Apply(segments, spans)
			if ok == (text == "reject" && len(spans) > 0) {
				t.Fatalf("seed %d: %s: ok is %t with %d spans", seed, text, ok, len(spans))
			}
			if problems := trajectory.CheckSegments(out); len(problems) > 0 {
				t.Fatalf("seed %d: %s: %v", seed, text, problems[0])
			}
			applied(t, text, segments, out)
		}
		if after, err := json.Marshal(segments); err != nil || string(after) != string(before) {
			t.Fatalf("seed %d: a policy changed the record", seed)
		}
	}
}

// applied checks that a policy changed what it is to change, and nothing else.
func applied(t *testing.T, policy string, before, after []*trajectory.Segment) {
	t.Helper()
	for i, s := range after {
		old := before[i]
		if !slices.Equal(s.ActionMask, old.ActionMask) || !slices.Equal(s.Tokens, old.Tokens) {
			t.Fatalf("%s changed what was sampled", policy)
		}
		for j, turn := range s.Turns {
			blocked := slices.Contains(s.BlockedTurns, j)
			loss := slices.Contains(s.LossMask[turn.Start:turn.End], 1)
			was := slices.Contains(old.LossMask[turn.Start:turn.End], 1)
			rewards := slices.DeleteFunc(slices.Clone(s.Rewards), func(r trajectory.RewardEvent) bool { return r.Index != turn.End-1 })
			switch {
			case policy == "mask" && blocked && loss, !(policy == "mask" && blocked) && loss != was:
				t.Fatalf("%s: turn %d trains: %t, and did: %t", policy, j, loss, was)
			case policy == "penalty:-0.5" && blocked != (len(rewards) == 1):
				t.Fatalf("%s: turn %d has reward events %v", policy, j, rewards)
			}
		}
	}
}
