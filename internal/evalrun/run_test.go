package evalrun

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/internal/evalrun/modeltest"
)

func TestRun(t *testing.T) {
	for name, how := range map[string]modeltest.Behaviour{
		"tools": modeltest.Script("echo one", "echo two"),
		"text":  modeltest.WithoutTools(modeltest.Script("echo one", "echo two")),
	} {
		t.Run(name, func(t *testing.T) {
			c, m, dir := newServer(t, "good", "bad"), model(t, how), t.TempDir()
			p := planFor(m.URL, "good", "bad")
			p.N = 2
			rep := mustRun(t, newRunner(dir, c, m.URL), p)
			if rep.Done != 4 || rep.Graded != 4 || rep.Resolved != 2 || rep.PassAt[1].Value != 0.5 || rep.PassAt[2].Value != 0.5 || rep.Turns != 12 || rep.Stops[StopSubmitted] != 4 {
				t.Errorf("%+v", rep)
			}
			for _, res := range rep.Results {
				if got := commands(t, c, res.RolloutID); got != "echo one|echo two|submit" {
					t.Errorf("%s #%d ran %s", res.TaskID, res.Attempt, got)
				}
				if res.TokensIn == 0 || res.Cost == 0 {
					t.Errorf("no tokens counted: %+v", res)
				}
			}
			sawOutput := false
			for _, req := range m.Requests() {
				sawOutput = sawOutput || strings.TrimSpace(req.Last()) == "one"
			}
			if !sawOutput {
				t.Error("the model was not shown what its command printed")
			}
			checkFiles(t, dir)
		})
	}
}

// checkFiles holds what a run leaves against the forms that other programs read.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	var p struct {
		InstanceID string `json:"instance_id"`
		Model      string `json:"model_name_or_path"`
		Patch      string `json:"model_patch"`
	}
	lines := strings.Split(strings.TrimSpace(readFile(t, dir, "predictions.2.jsonl")), "\n")
	if err := json.Unmarshal([]byte(lines[0]), &p); err != nil || len(lines) != 2 || p.InstanceID != "bad" || p.Model != "m" || p.Patch != "--- a\n+++ b\n" {
		t.Errorf("%+v %v, %d lines", p, err, len(lines))
	}
	var rep map[string]any
	if err := json.Unmarshal([]byte(readFile(t, dir, "swebench", "report.json")), &rep); err != nil || rep["schema_version"] != 2.0 || rep["resolved_instances"] != 1.0 || rep["unresolved_instances"] != 1.0 {
		t.Errorf("%v %v", rep, err)
	}
	one := readFile(t, dir, "swebench", "logs", "attempt", "good", "report.json")
	if !strings.Contains(one, `"resolved": true`) || !strings.Contains(one, `"patch_is_None": false`) || !strings.Contains(one, `"FAIL_TO_FAIL"`) {
		t.Error(one)
	}
	for _, name := range []string{"report.json", "attempts/good/1.trajectory.json", "attempts/good/1.jsonl", "attempts/good/1.patch"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// An endpoint that misbehaves for a while is waited for; one that goes on fails the attempt with its
// class, and the others go on.
func TestEndpoints(t *testing.T) {
	script := modeltest.Script("echo one")
	for name, c := range map[string]struct {
		how   modeltest.Behaviour
		class string // of the failure, "" for none
		words string
	}{
		"429 at first":       {modeltest.First(2, modeltest.Fail(429, "slow down"), script), "", ""},
		"500 at first":       {modeltest.First(1, modeltest.Fail(500, "oops"), script), "", ""},
		"nonsense at first":  {modeltest.First(1, modeltest.Garbage("<html>"), script), "", ""},
		"429 for good":       {modeltest.Fail(429, "slow down"), FailEndpoint, "rate limit"},
		"500 for good":       {modeltest.Fail(500, "oops"), FailEndpoint, "is down (HTTP 500)"},
		"nonsense for good":  {modeltest.Garbage("<html>"), FailEndpoint, "answers nonsense"},
		"no choices":         {modeltest.Garbage(`{"choices": []}`), FailEndpoint, "answers nonsense"},
		"cut short":          {modeltest.Garbage(`{"choices": [{"mess`), FailEndpoint, "answers nonsense"},
		"slow":               {modeltest.Stall(time.Minute), FailEndpoint, "too slow"},
		"a wrong key":        {modeltest.Fail(401, "who are you"), FailEndpoint, "refuses (HTTP 401)"},
		"no arguments' JSON": {modeltest.First(1, modeltest.Tool("bash", `{"command": `), script), "", ""},
		"an unknown tool":    {modeltest.First(1, modeltest.Tool("fly", `{}`), script), "", ""},
		"arguments' type":    {modeltest.First(1, modeltest.Tool("bash", `{"command": 7}`), script), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, m, dir := newServer(t, "good"), model(t, c.how), t.TempDir()
			r := newRunner(dir, srv, m.URL)
			r.Endpoint.Timeout = 300 * time.Millisecond
			rep := mustRun(t, r, planFor(m.URL, "good"))
			res := rep.Results[0]
			if c.class == "" {
				if res.Reward == nil {
					t.Errorf("%+v", res)
				}
				return
			}
			if res.Reward != nil || res.FailureClass != c.class || !strings.Contains(res.Error, c.words) || rep.Failures[c.class] != 1 {
				t.Errorf("%+v", res)
			}
			if v := allRollouts(t, srv)[0]; v.Status != "deleted" {
				t.Errorf("the rollout is left %s", v.Status)
			}
		})
	}
}

func TestEndpointIsDown(t *testing.T) {
	m := modeltest.New(modeltest.Script())
	m.Close()
	c, dir := newServer(t, "good", "bad"), t.TempDir()
	rep := mustRun(t, newRunner(dir, c, m.URL), planFor(m.URL, "good", "bad"))
	if rep.Failures[FailEndpoint] != 2 || !strings.Contains(rep.Results[0].Error, "is down") {
		t.Errorf("%+v", rep.Results[0])
	}
	up := model(t, modeltest.Script("echo one"))
	r := newRunner(dir, c, up.URL)
	if again := mustRun(t, r, planFor(m.URL, "good", "bad")); again.Failures[FailEndpoint] != 2 || len(up.Requests()) != 0 {
		t.Errorf("failed attempts were made again unasked: %+v", again)
	}
	r.RetryFailed = true
	if again := mustRun(t, r, planFor(m.URL, "good", "bad")); again.Graded != 2 || again.Results[0].Try != 1 {
		t.Errorf("%+v", again.Results[0])
	}
}

func TestBudgets(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request, req *modeltest.Request) {
		time.Sleep(5 * time.Millisecond)
		modeltest.Tool("bash", `{"command": "echo on"}`)(w, r, req)
	}
	for want, b := range map[string]Budget{
		StopTurns: {Turns: 4}, StopTokens: {Tokens: 200}, StopCost: {Cost: 0.0003}, StopTime: {Seconds: 0.2},
	} {
		t.Run(want, func(t *testing.T) {
			c, m := newServer(t, "good"), model(t, endless)
			p := planFor(m.URL, "good")
			p.Budget = b
			res := mustRun(t, newRunner(t.TempDir(), c, m.URL), p).Results[0]
			if res.Stop != want || res.Reward == nil {
				t.Errorf("%+v", res)
			}
		})
	}
	c, m := newServer(t, "good"), model(t, modeltest.Say("I am thinking."))
	res := mustRun(t, newRunner(t.TempDir(), c, m.URL), planFor(m.URL, "good")).Results[0]
	if res.Stop != StopNoCall || res.Turns != maxIdle {
		t.Errorf("%+v", res)
	}
}

// Near the context's end the model sums up and goes on from its summary.
func TestCompaction(t *testing.T) {
	turn := 0
	how := func(w http.ResponseWriter, r *http.Request, req *modeltest.Request) {
		if strings.Contains(req.Last(), "Write down for yourself") {
			if len(req.Tools) > 0 {
				t.Error("tools are offered for a summary")
			}
			modeltest.Say("SUMMARY: two done")(w, r, req)
			return
		}
		if turn++; turn > 8 {
			modeltest.Tool("submit", "{}")(w, r, req)
			return
		}
		modeltest.Tool("bash", `{"command": "echo `+strings.Repeat("word ", 60)+`"}`)(w, r, req)
	}
	c, m := newServer(t, "good"), model(t, how)
	p := planFor(m.URL, "good")
	p.Budget.Context = 400
	res := mustRun(t, newRunner(t.TempDir(), c, m.URL), p).Results[0]
	if res.Compactions == 0 || res.Reward == nil || res.Turns != 9 {
		t.Errorf("%+v", res)
	}
	last := m.Requests()[len(m.Requests())-1]
	if len(last.Messages) < 3 || !strings.Contains(last.Messages[2].Content, "SUMMARY: two done") || last.Messages[1].Content != "Fix good." {
		t.Errorf("%+v", last.Messages)
	}
}

// An endpoint that refuses a prompt for its length gets a shorter one.
func TestTooLong(t *testing.T) {
	script := modeltest.Script("echo "+strings.Repeat("w ", 2000), "echo b", "echo c", "echo d")
	how := func(w http.ResponseWriter, r *http.Request, req *modeltest.Request) {
		n := 0
		for _, m := range req.Messages {
			n += len(m.Content)
		}
		if n > 4000 && req.Turn() > 2 {
			modeltest.Fail(400, "This model's maximum context length is 1000 tokens")(w, r, req)
			return
		}
		script(w, r, req)
	}
	c, m := newServer(t, "good"), model(t, how)
	res := mustRun(t, newRunner(t.TempDir(), c, m.URL), planFor(m.URL, "good")).Results[0]
	if res.Stop != StopSubmitted || res.Compactions != 1 {
		t.Errorf("%+v", res)
	}
}

func TestOutsideAgents(t *testing.T) {
	t.Setenv("PROCTOR_API_KEY", "secret") // so that its subtests run one by one
	const speak = `curl -sSf "$PROCTOR_URL/v1/rollouts/$PROCTOR_ROLLOUT/calls" -H "Authorization: Bearer $PROCTOR_AGENT_TOKEN" -d '{"call_id": "1", "name": "bash", "arguments": {"command": "echo hi"}}' || exit 9
[ "$(cat "$PROCTOR_INSTRUCTION_FILE")" = "Fix good." ] && [ "$PROCTOR_TASK.$PROCTOR_ATTEMPT" = good.1 ] && [ -z "$PROCTOR_API_KEY" ] || { env; exit 8; }`
	for name, c := range map[string]struct{ command, stop, class string }{
		"works":          {speak, StopAgent, ""},
		"fails":          {"echo broken >&2; exit 3", StopFailed, FailAgent},
		"hangs":          {"sleep 100 & sleep 100", StopTime, ""},
		"does nothing":   {":", StopAgent, ""},
		"leaves a child": {"(sleep 100 &) ; exit 0", StopAgent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv, dir := newServer(t, "good"), t.TempDir()
			p := Plan{Tasks: []string{"good"}, N: 1, Protocol: Auto, Agent: c.command, Budget: Budget{Seconds: 2}}
			began := time.Now()
			res := mustRun(t, &Runner{Dir: dir, Client: srv, Patience: time.Second}, p).Results[0]
			if res.Stop != c.stop || c.class != "" && (res.FailureClass != c.class || !strings.Contains(res.Error, "broken")) || c.class == "" && res.Reward == nil {
				t.Errorf("%+v\n%s", res, readFile(t, AttemptDir(dir, "good"), "1.log"))
			}
			if name == "works" && commands(t, srv, res.RolloutID) != "echo hi" {
				t.Error("its call is not on the record")
			}
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// A talk whose summary was the last thing on disk goes on with a question, not with a nudge.
func TestResumeAfterSummary(t *testing.T) {
	c, m, dir := newServer(t, "good"), model(t, modeltest.Script("echo one")), t.TempDir()
	r := newRunner(dir, c, m.URL)
	p, err := openPlan(dir, planFor(m.URL, "good"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(AttemptDir(dir, "good"), 0o755); err != nil {
		t.Fatal(err)
	}
	const before = `{"kind":"reply","turn":1,"message":{"role":"assistant","content":"hm"}}
{"kind":"summary","turn":1,"message":{"role":"user","content":"SUMMARY"}}
`
	if err := os.WriteFile(filepath.Join(AttemptDir(dir, "good"), "1.jsonl"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	p.ID, p.CreatedAt = "", time.Time{}
	mustRun(t, r, p)
	if got := m.Requests()[0]; len(got.Messages) != 3 || got.Last() != "SUMMARY" {
		t.Errorf("%+v", got.Messages)
	}
}

func TestPlans(t *testing.T) {
	c, m, dir := newServer(t, "good"), model(t, modeltest.Script()), t.TempDir()
	p := planFor(m.URL, "good")
	mustRun(t, newRunner(dir, c, m.URL), p)
	other := p
	other.Model = "another"
	if _, err := newRunner(dir, c, m.URL).Run(t.Context(), other); !errors.Is(err, ErrOtherRun) || !strings.Contains(err.Error(), "model (there m, here another)") {
		t.Errorf("%v", err)
	}
	for want, change := range map[string]func(*Plan){
		"no tasks": func(p *Plan) { p.Tasks = nil }, "named twice": func(p *Plan) { p.Tasks = []string{"a", "a"} }, "n is 0": func(p *Plan) { p.N = 0 },
		"who is to work": func(p *Plan) { p.Model = "" }, "give one": func(p *Plan) { p.Agent = "x" }, "protocol": func(p *Plan) { p.Protocol = "smoke" },
	} {
		q := p
		change(&q)
		if _, err := newRunner(t.TempDir(), c, m.URL).Run(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	unlock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := newRunner(dir, c, m.URL).Run(t.Context(), p); !errors.Is(err, errBusy) {
		t.Errorf("a folder in use: %v", err)
	}
}

// A task that the server does not have fails with its class, and the others go on.
func TestOneBadTask(t *testing.T) {
	c, m := newServer(t, "good"), model(t, modeltest.Script("echo one"))
	rep := mustRun(t, newRunner(t.TempDir(), c, m.URL), planFor(m.URL, "absent", "good"))
	if rep.Graded != 1 || rep.Failures["task"] != 1 || rep.Results[0].Error == "" {
		t.Errorf("%+v", rep)
	}
}
