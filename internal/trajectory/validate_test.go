package trajectory_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

// good gives two segments that hold everything.
func good() []*trajectory.Segment {
	p := trajtest.New(1)
	p.Turn("ls", "a\n")
	p.Turn("ls", "a\n")
	p.Sample(trajtest.Msg("assistant", "x"), func(c *trajectory.ModelCall) { c.PromptIDs = []int32{1, 2, 3} })
	return trajectory.Build(p.Calls)
}

func TestCheckSegments(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(s []*trajectory.Segment)
		field string // of the first problem; "" for none
	}{
		"as built":           {func([]*trajectory.Segment) {}, ""},
		"fewer logprobs":     {func(s []*trajectory.Segment) { s[0].Logprobs = s[0].Logprobs[1:] }, "segments[0].logprobs"},
		"fewer actions":      {func(s []*trajectory.Segment) { s[0].ActionMask = s[0].ActionMask[1:] }, "segments[0].action_mask"},
		"more losses":        {func(s []*trajectory.Segment) { s[0].LossMask = append(s[0].LossMask, 0) }, "segments[0].loss_mask"},
		"a prompt trains":    {func(s []*trajectory.Segment) { s[0].LossMask[0] = 1 }, "segments[0].loss_mask[0]"},
		"a mask of 2":        {func(s []*trajectory.Segment) { s[1].ActionMask[3] = 2 }, "segments[1].action_mask[3]"},
		"NaN":                {func(s []*trajectory.Segment) { s[0].Logprobs[2] = math.NaN() }, "segments[0].logprobs[2]"},
		"minus infinity":     {func(s []*trajectory.Segment) { s[0].Logprobs[2] = math.Inf(-1) }, "segments[0].logprobs[2]"},
		"a probability of 2": {func(s []*trajectory.Segment) { s[0].Logprobs[2] = 0.7 }, "segments[0].logprobs[2]"},
		"a negative id":      {func(s []*trajectory.Segment) { s[0].Tokens[4] = -1 }, "segments[0].tokens[4]"},
		"an order":           {func(s []*trajectory.Segment) { s[1].Order = 5 }, "segments[1].order"},
		"a kind":             {func(s []*trajectory.Segment) { s[1].Kind = "odd" }, "segments[1].kind"},
		"a cause":            {func(s []*trajectory.Segment) { s[1].Cause = "" }, "segments[1].cause"},
		"an orphan":          {func(s []*trajectory.Segment) { s[1].Parent = nil }, "segments[1].parent"},
		"its own parent":     {func(s []*trajectory.Segment) { s[1].Parent = &s[1].ID }, "segments[1].parent"},
		"one id twice":       {func(s []*trajectory.Segment) { s[1].ID = s[0].ID }, "segments[1].id"},
		"turns that overlap": {func(s []*trajectory.Segment) { s[0].Turns[1].Start = s[0].Turns[0].Start }, "segments[0].turns[1]"},
		"a turn outside":     {func(s []*trajectory.Segment) { s[1].Turns[0].End = 1 << 20 }, "segments[1].turns[0]"},
		"a turn with prompt": {func(s []*trajectory.Segment) { s[1].Turns[0].Start-- }, "segments[1].turns[0]"},
		"sampled outside":    {func(s []*trajectory.Segment) { s[0].Turns = s[0].Turns[:1] }, "segments[0].action_mask"},
		"n_action":           {func(s []*trajectory.Segment) { s[0].NAction++ }, "segments[0].n_action"},
		"n_after":            {func(s []*trajectory.Segment) { s[0].NAfter++ }, "segments[0].n_after"},
		"trained twice":      {func(s []*trajectory.Segment) { s[1].Turns[0].ModelCall = 1 }, "segments[1].turns[0]"},
		"tokens as text":     {func(s []*trajectory.Segment) { s[0].TextOnly = "why" }, "segments[0].text_only"},
		"no such turn":       {func(s []*trajectory.Segment) { s[0].BlockedTurns = []int{9} }, "segments[0].blocked_turns[0]"},
		"no such token":      {func(s []*trajectory.Segment) { s[0].Rewards = []trajectory.RewardEvent{{Index: -1}} }, "segments[0].rewards[0]"},
		"null":               {func(s []*trajectory.Segment) { s[0] = nil }, "segments[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.spoil(s)
			problems := trajectory.CheckSegments(s)
			switch {
			case tc.field == "" && len(problems) > 0:
				t.Errorf("problems %v", problems)
			case tc.field != "" && (len(problems) == 0 || problems[0].Field != tc.field):
				t.Errorf("problems %v, want one of %s", problems, tc.field)
			}
		})
	}
}

// Two segments that train the same sample are found by their tokens, where no model call is named.
func TestTrainedTwiceByTokens(t *testing.T) {
	one := func(id string, order int, parent *string) *trajectory.Segment {
		s := &trajectory.Segment{ID: id, Order: order, Parent: parent, Cause: "retry", Tokens: []int32{1, 2, 3}, Logprobs: []float64{0, -1, -1}, ActionMask: []int8{0, 1, 1}, LossMask: []int8{0, 1, 1}}
		if parent == nil {
			s.Cause = ""
		}
		trajectory.Complete(s)
		return s
	}
	a := one("a", 0, nil)
	b := one("b", 1, &a.ID)
	if problems := trajectory.CheckUpload([]*trajectory.Segment{a, b}); len(problems) != 1 || !strings.Contains(problems[0].What, "trains token 1") {
		t.Errorf("problems %v", problems)
	}
	b.Tokens[0] = 9 // another context, another sample
	b.NAfter, a.NAfter = 0, 0
	if problems := trajectory.CheckUpload([]*trajectory.Segment{a, b}); len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
	if a.NAfter != 2 || a.NAction != 2 || len(a.Turns) != 1 || a.Turns[0].Start != 1 || a.Turns[0].End != 3 {
		t.Errorf("completed to %+v", a)
	}
}

// FuzzUpload: whatever is uploaded, the check ends, and what it lets pass holds the invariants.
func FuzzUpload(f *testing.F) {
	whole, err := json.Marshal(good())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`[{"tokens":[1,2],"logprobs":[0,-1],"action_mask":[0,1],"loss_mask":[0,1],"id":"a"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s []*trajectory.Segment
		if json.Unmarshal(text, &s) != nil {
			return
		}
		for _, g := range s {
			if g == nil {
				return
			}
			trajectory.Complete(g)
		}
		if len(trajectory.CheckUpload(s)) > 0 {
			return
		}
		for _, g := range s {
			for i := range g.Tokens {
				if g.LossMask[i] > g.ActionMask[i] || len(g.Logprobs) != len(g.Tokens) {
					t.Errorf("let pass: %s", text)
				}
			}
		}
	})
}
