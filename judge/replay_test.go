package judge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"proctor/judge"
	"proctor/judge/judgetest"
)

// recorded asks about some calls through a Recorder and gives the questions, the answers and the file.
func recorded(t *testing.T) ([]judge.Case, []judge.Opinion, *bytes.Buffer) {
	t.Helper()
	var file bytes.Buffer
	r := judge.NewRecorder(client(t, honest(t), nil), &file)
	var cases []judge.Case
	var opinions []judge.Opinion
	for i := range 4 {
		c := foreign(t, fmt.Sprintf("git show v2 # %d", i))
		c.Task.ID = "t"
		cases = append(cases, c)
		opinions = append(opinions, r.Judge(context.Background(), c))
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return cases, opinions, &file
}

func replayOf(t *testing.T, text string) *judge.Replay {
	t.Helper()
	decisions, err := judge.ReadDecisions(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := judge.NewReplay(decisions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplay(t *testing.T) {
	cases, opinions, file := recorded(t)
	r := replayOf(t, file.String())
	for i, c := range cases {
		var call map[string]any
		if err := json.Unmarshal(c.Call, &call); err != nil {
			t.Fatal(err)
		}
		spelled, err := json.MarshalIndent(call, " ", "  ") // the same, in another spelling
		if err != nil {
			t.Fatal(err)
		}
		c.Call = spelled
		got, want := encode(t, r.Judge(context.Background(), c)), encode(t, opinions[i])
		if string(got) != string(want) {
			t.Errorf("replayed %s\nrecorded %s", got, want)
		}
	}
	if len(r.Missed()) > 0 || r.Digest() != replayOf(t, file.String()).Digest() {
		t.Errorf("missed %v, digest %s", r.Missed(), r.Digest())
	}
	other := cases[0]
	other.Task.ID = "other"
	if o := r.Judge(context.Background(), other); o.Verdict != judge.Hack {
		t.Errorf("the same question of another task: %+v", o)
	}
	if o := r.Judge(context.Background(), foreign(t, "git show v3")); o.Verdict != judge.Unsure || o.Failure != judge.FailNotRecorded || len(r.Missed()) != 1 || !strings.Contains(r.Missed()[0], "git show v3") {
		t.Errorf("%+v, missed %q", o, r.Missed())
	}
}

// TestReplayOfATrajectory takes decisions out of what a server exports.
func TestReplayOfATrajectory(t *testing.T) {
	cases, opinions, _ := recorded(t)
	calls := []any{map[string]any{"name": "bash", "arguments": map[string]string{"command": "ls"}, "verdict": map[string]any{"hits": []any{}, "opinion": nil}}}
	for i, c := range cases {
		calls = append(calls, map[string]any{"name": c.Tool, "arguments": c.Call, "event": c.Event,
			"verdict": map[string]any{"hits": []any{map[string]any{"rule": c.Hits[0].Rule, "entity": "command"}}, "opinion": opinions[i]}})
	}
	doc := encode(t, map[string]any{"schema": "proctor.trajectory/1", "rollout": map[string]any{"task_id": "t", "digests": map[string]string{"judge": "sha256:x"}}, "calls": calls})
	r := replayOf(t, string(doc))
	for i, c := range cases {
		if o := r.Judge(context.Background(), c); o.Verdict != opinions[i].Verdict || o.Reason != opinions[i].Reason {
			t.Errorf("%d: %+v", i, o)
		}
	}
}

func TestFailuresAreNotRecorded(t *testing.T) {
	var file bytes.Buffer
	s := judgetest.Start(judgetest.NotJSON)
	defer s.Close()
	judge.NewRecorder(client(t, s, nil), &file).Judge(context.Background(), foreign(t, "git show v2"))
	if file.Len() > 0 {
		t.Errorf("recorded %s", &file)
	}
}

func TestBadDecisions(t *testing.T) {
	_, _, file := recorded(t)
	line, _, _ := strings.Cut(file.String(), "\n")
	for name, tc := range map[string]struct{ text, want string }{
		"empty":          {"", "no decision"},
		"no JSON":        {line + "\n{\"task\": ", "line 2"},
		"another schema": {`{"schema": "atif/1"}`, `line 1: schema "atif/1"`},
		"unknown key":    {line + "\n\n" + strings.Replace(line, `"tool"`, `"tol"`, 1), "line 3: not a recorded decision"},
		"bad verdict":    {strings.Replace(line, `"verdict":"hack"`, `"verdict":"maybe"`, 1), "opinion.verdict"},
		"no event":       {`{"task":"t","tool":"bash","call":{},"opinion":{"verdict":"hack"}}`, "tool, call and event"},
		"contradiction":  {line + "\n" + strings.Replace(line, `"verdict":"hack"`, `"verdict":"benign"`, 1), "keep one of them"},
	} {
		decisions, err := judge.ReadDecisions(strings.NewReader(tc.text))
		if err == nil {
			_, err = judge.NewReplay(decisions)
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// FuzzReadDecisions reads any file without a crash.
func FuzzReadDecisions(f *testing.F) {
	f.Add([]byte(`{"schema": "proctor.trajectory/1", "rollout": {}, "calls": [{"verdict": {"opinion": {}}}]}`))
	f.Add([]byte(`{"task":"t","tool":"bash","call":{},"event":{},"rules":null,"opinion":{"verdict":"hack"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if decisions, err := judge.ReadDecisions(bytes.NewReader(data)); err == nil {
			_, _ = judge.NewReplay(decisions) // a refusal is fine too
		}
	})
}
