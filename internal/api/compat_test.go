package api

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearerTransport sends a key with every request.
type bearerTransport string

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// The protocol's own Go client lists the tools, calls one, and learns of a bad call as the model would.
func TestMCP(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: l.srv.URL + "/v1/rollouts/r_one/mcp",
		HTTPClient: &http.Client{Transport: bearerTransport("agent-one")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	for _, tool := range rollouts.ToolList() {
		if !slices.Contains(names, tool.Name) {
			t.Errorf("tool %s is missing from %v", tool.Name, names)
		}
	}
	got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "echo hi"}})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := got.Content[0].(*mcp.TextContent)
	if got.IsError || text == nil || text.Text != "hi\n" || !strings.Contains(fmt.Sprint(got.StructuredContent), "exit_code:0") {
		t.Errorf("got %+v", got)
	}
	if last := l.fake.calls[len(l.fake.calls)-1]; last.Principal != monitor.Agent || last.Name != "bash" {
		t.Errorf("the call is %+v", last)
	}
	got, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"cmd": "ls"}})
	if err != nil || !got.IsError {
		t.Errorf("a bad call: %+v, %v", got, err)
	}
}

func TestMCPNeedsTheToken(t *testing.T) {
	l := newLab(t)
	want := l.send("GET", "/v1/nowhere", "agent-one", "")
	for _, key := range []string{"", "wrong"} {
		for _, path := range []string{"/v1/rollouts/r_one/mcp", "/v1/rollouts/r_two/mcp", "/compat/swerex/r_one/is_alive", "/compat/openenv/health", "/compat/nemo-gym"} {
			if got := l.send("POST", path, key, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); got.status != 404 || got.body != want.body {
				t.Errorf("%s with %q: %d %s", path, key, got.status, got.body)
			}
		}
	}
	if got := l.send("GET", "/compat/openenv/health", "agent-one", ""); got.status != 404 || got.body != want.body {
		t.Errorf("an agent's token opens OpenEnv: %d %s", got.status, got.body)
	}
}

// rex posts to the SWE-ReX runtime of r_one.
func rex(t *testing.T, l *lab, key, endpoint, body string) (int, map[string]any) {
	t.Helper()
	got := l.send("POST", "/compat/swerex/r_one/"+endpoint, key, body)
	var out map[string]any
	if err := json.Unmarshal([]byte(got.body), &out); err != nil {
		t.Fatalf("%s: %d %s", endpoint, got.status, got.body)
	}
	return got.status, out
}

func TestSWEReX(t *testing.T) {
	l := newLab(t)
	exit := 0
	timedOut := false
	l.fake.call = func(c monitor.Call) (monitor.Observation, error) {
		o := monitor.Observation{Output: "out\n", ExitCode: &exit, TimedOut: timedOut}
		if timedOut {
			o.ExitCode = nil
		}
		return o, nil
	}
	if status, out := rex(t, l, "agent-one", "create_session", `{"session": "default", "session_type": "bash", "startup_source": ["/root/.bashrc"]}`); status != 200 || out["session_type"] != "bash" {
		t.Errorf("create_session: %d %v", status, out)
	}
	if status, out := rex(t, l, "agent-one", "create_session", `{}`); status != 511 || !strings.Contains(fmt.Sprint(out), "SessionExistsError") {
		t.Errorf("twice: %d %v", status, out)
	}
	run := `{"command": "make", "session": "default", "timeout": 5, "check": "raise", "action_type": "bash"}`
	if status, out := rex(t, l, "agent-one", "run_in_session", run); status != 200 || out["output"] != "out\n" || out["exit_code"] != 0.0 {
		t.Errorf("run: %d %v", status, out)
	}
	if c := l.fake.calls[len(l.fake.calls)-1]; c.Principal != monitor.Agent || c.Name != "bash" {
		t.Errorf("the call is %+v", c)
	}
	exit = 3
	if status, out := rex(t, l, "agent-one", "run_in_session", run); status != 511 || !strings.Contains(fmt.Sprint(out), "NonZeroExitCodeError") {
		t.Errorf("exit 3, raise: %d %v", status, out)
	}
	for check, want := range map[string]any{"silent": 3.0, "ignore": nil} {
		if status, out := rex(t, l, "agent-one", "run_in_session", strings.Replace(run, "raise", check, 1)); status != 200 || out["exit_code"] != want {
			t.Errorf("exit 3, %s: %d %v", check, status, out)
		}
	}
	timedOut = true
	if status, out := rex(t, l, "agent-one", "run_in_session", run); status != 511 || !strings.Contains(fmt.Sprint(out), "CommandTimeoutError") {
		t.Errorf("timeout: %d %v", status, out)
	}
	timedOut, exit = false, 0
	if status, out := rex(t, l, "agent-one", "run_in_session", `{"command": "x", "session": "other"}`); status != 511 || !strings.Contains(fmt.Sprint(out), "SessionDoesNotExistError") {
		t.Errorf("no session: %d %v", status, out)
	}
	if status, out := rex(t, l, "agent-one", "execute", `{"command": ["echo", "it's"], "shell": false, "cwd": "/tmp", "env": {"A": "b c"}}`); status != 200 || out["stdout"] != "out\n" {
		t.Errorf("execute: %d %v", status, out)
	}
	if want := `(cd '/tmp' || exit 1\nexport A='b c'\n'echo' 'it'\\''s'\n)`; !strings.Contains(string(l.fake.calls[len(l.fake.calls)-1].Arguments), want) {
		t.Errorf("ran %s, want %s", l.fake.calls[len(l.fake.calls)-1].Arguments, want)
	}
	n := len(l.fake.calls)
	if status, out := rex(t, l, "trainer-key", "execute", `{"command": "ls /", "shell": true}`); status != 200 || !strings.Contains(fmt.Sprint(out["stdout"]), "sh -c ls /") || len(l.fake.calls) != n {
		t.Errorf("the harness's execute: %d %v", status, out)
	}
	for _, step := range [][2]string{{"read_file", `{"path": "/a"}`}, {"write_file", `{"path": "/a", "content": "x"}`}, {"close_session", `{}`}, {"close", `{}`}} {
		if status, out := rex(t, l, "agent-one", step[0], step[1]); status != 200 {
			t.Errorf("%s: %d %v", step[0], status, out)
		}
	}
	for endpoint, body := range map[string]string{"execute": `[]`, "run_in_session": `{"command": 7}`, "upload": `{}`} {
		if status, out := rex(t, l, "agent-one", endpoint, body); status != 511 {
			t.Errorf("%s of %s: %d %v", endpoint, body, status, out)
		}
	}
	if status, _ := rex(t, l, "agent-one", "nothing", `{}`); status != 404 {
		t.Errorf("no such endpoint: %d", status)
	}
}

func TestSWEReXUpload(t *testing.T) {
	l := newLab(t)
	archive := func(names ...string) []byte {
		var buf bytes.Buffer
		z := zip.NewWriter(&buf)
		for _, name := range names {
			w, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(w, "body of "+name)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	send := func(data []byte, unzip string) int {
		var body bytes.Buffer
		m := multipart.NewWriter(&body)
		part, _ := m.CreateFormFile("file", "f.zip")
		_, _ = part.Write(data)
		_ = m.WriteField("target_path", "/tools")
		_ = m.WriteField("unzip", unzip)
		_ = m.Close()
		req, _ := http.NewRequest("POST", l.srv.URL+"/compat/swerex/r_one/upload", &body)
		req.Header.Set("Content-Type", m.FormDataContentType())
		req.Header.Set("X-API-Key", "agent-one")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if got := send(archive("a.txt", "bin/b"), "true"); got != 200 || len(l.fake.calls) != 2 || !strings.Contains(string(l.fake.calls[1].Arguments), "/tools/bin/b") {
		t.Errorf("%d, calls %+v", got, l.fake.calls)
	}
	n := len(l.fake.calls)
	for _, bad := range [][]byte{archive("../evil"), archive("/etc/passwd"), archive("a/../../b"), []byte("no zip")} {
		if got := send(bad, "true"); got != 511 || len(l.fake.calls) != n {
			t.Errorf("a bad archive: %d, %d calls", got, len(l.fake.calls)-n)
		}
	}
	if got := send([]byte("\x7fELF\x00"), "false"); got != 200 || !strings.Contains(string(l.fake.calls[len(l.fake.calls)-1].Arguments), "base64 -d") {
		t.Errorf("binary: %d", got)
	}
}

func TestOpenEnv(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reward := 1.0
	l.fake.grade = func(bool) (*tasks.Grade, error) { return &tasks.Grade{Outcome: tasks.Resolved, Reward: &reward}, nil }
	conn, _, err := websocket.Dial(ctx, l.srv.URL+"/compat/openenv/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer trainer-key"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	say := func(msg string) string {
		t.Helper()
		if err := conn.Write(ctx, websocket.MessageText, []byte(msg)); err != nil {
			t.Fatal(err)
		}
		_, out, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, step := range []struct{ say, want string }{
		{`{"type": "state"}`, `"episode_id":null`},
		{`{"type": "step", "data": {"command": "ls"}}`, `"SESSION_ERROR"`},
		{`{"type": "reset", "data": {"task_id": "t", "seed": 3, "unknown": 1}}`, `"done":false`},
		{`{"type": "step", "data": {"command": "ls"}}`, `"output":"hi\n"`},
		{`{"type": "step", "data": {"type": "call_tool", "tool_name": "bash", "arguments": {"command": "ls"}, "metadata": {}}}`, `"tool_name":"bash"`},
		{`{"type": "step", "data": {"type": "list_tools"}}`, `"input_schema"`},
		{`{"type": "step", "data": {"tool_name": "bash", "arguments": {"cmd": "ls"}}}`, `"invalid_args"`},
		{`{"type": "step", "data": {"tool": "bash"}}`, `"VALIDATION_ERROR"`},
		{`{"type": "mcp", "data": {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "ls"}}}}`, `"id":7`},
		{`{"type": "state"}`, `"step_count":4`},
		{`{"type": "step", "data": {"tool_name": "submit"}}`, `"reward":1`},
		{`{"type": "step", "data": {"command": "ls"}}`, `the episode is over`},
		{`{"type": "nonsense"}`, `"UNKNOWN_TYPE"`},
		{`{`, `"INVALID_JSON"`},
	} {
		if got := say(step.say); !strings.Contains(got, step.want) {
			t.Errorf("%s:\n%s\nwant %s", step.say, got, step.want)
		}
	}
	if len(l.fake.created) != 1 || l.fake.created[0].TaskID != "t" || l.fake.created[0].Seed != 3 {
		t.Errorf("created %+v", l.fake.created)
	}
	for path, want := range map[string]string{"health": "healthy", "metadata": "proctor", "schema": "tool_name", "state": "step_count"} {
		if got := l.send("GET", "/compat/openenv/"+path, "trainer-key", ""); got.status != 200 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestOpenEnvOverHTTP(t *testing.T) {
	l := newLab(t)
	rpc := func(body string) string { return l.send("POST", "/compat/openenv/mcp", "trainer-key", body).body }
	var made struct {
		Result struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(rpc(`{"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create", "params": {"task_id": "t"}}`)), &made); err != nil || made.Result.SessionID == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	for body, want := range map[string]string{
		`{"id": 1, "method": "tools/list"}`: `"inputSchema"`,
		`{"id": 2, "method": "tools/call", "params": {"session_id": "` + made.Result.SessionID + `", "name": "bash", "arguments": {"command": "ls"}}}`: `"hi\n"`,
		`{"id": 3, "method": "tools/call", "params": {"name": "bash"}}`:                                                                                `session_id is unknown`,
		`{"id": 4, "method": "prompts/list"}`: `-32601`,
		`{`:                                   `-32700`,
		`{"id": 5}`:                           `-32600`,
		`{"id": 6, "method": "openenv/session/close", "params": {"session_id": "nothing"}}`: `Unknown session_id`,
	} {
		if got := rpc(body); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := rpc(`{"id": 7, "method": "openenv/session/close", "params": {"session_id": "` + made.Result.SessionID + `"}}`); !strings.Contains(got, "closed") {
		t.Error(got)
	}
}

func TestNeMoGym(t *testing.T) {
	l := newLab(t)
	reward := 0.5
	graded := tasks.Grade{Outcome: tasks.Unresolved, Reward: &reward, FailureClass: "none"}
	l.fake.grade = func(bool) (*tasks.Grade, error) { return &graded, nil }
	open := httptest.NewServer(l.api.CompatHandler()) // the listener for clients without a key
	t.Cleanup(open.Close)
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	post := func(path, body string) (int, string) {
		t.Helper()
		res, err := client.Post(open.URL+"/compat/nemo-gym/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		out, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(out)
	}
	if status, out := post("bash", `{"command": "ls"}`); status != 422 || !strings.Contains(out, "seed_session") {
		t.Errorf("no session: %d %s", status, out)
	}
	if status, out := post("seed_session", `{"responses_create_params": {"input": [], "metadata": {"task_id": "t"}}}`); status != 200 || !strings.Contains(out, "r_one") {
		t.Fatalf("seed: %d %s", status, out)
	}
	if l.fake.created[0].TaskID != "t" {
		t.Errorf("created %+v", l.fake.created)
	}
	for path, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"bash":              {`{"command": "ls"}`, 200, `"output":"hi\n"`},
		"view":              {`{"nothing": 1}`, 422, "arguments.path"},
		"no_such_tool":      {`{}`, 404, "Not Found"},
		"verify":            {`{"responses_create_params": {"input": [1]}, "response": {"id": "x"}, "extra": true}`, 200, `"reward":0.5`},
		"aggregate_metrics": {`{"verify_responses": [{"reward": 1}, {"reward": 0, "other": "x"}]}`, 200, `"mean/reward":0.5`},
	} {
		status, out := post(path, tc.body)
		if status != tc.status || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %d %s", path, status, out)
		}
		if path == "verify" && (!strings.Contains(out, `"extra":true`) || !strings.Contains(out, `"response":{"id":"x"}`)) {
			t.Errorf("verify does not give back what it was sent: %s", out)
		}
	}
	graded.Reward, graded.FailureClass = nil, "infra"
	if status, out := post("verify", `{}`); status != 503 || !strings.Contains(out, "no reward") {
		t.Errorf("an unknown reward: %d %s", status, out)
	}
	for _, path := range []string{"", "/reverify_mode"} {
		if res, err := client.Get(open.URL + "/compat/nemo-gym" + path); err != nil || res.StatusCode != 200 {
			t.Errorf("%q: %v %v", path, res, err)
		}
	}
	forged, _ := http.NewRequest("POST", open.URL+"/compat/nemo-gym/bash", strings.NewReader(`{"command": "ls"}`))
	forged.AddCookie(&http.Cookie{Name: "proctor_rollout", Value: "r_one.00"})
	if res, err := http.DefaultClient.Do(forged); err != nil || res.StatusCode != 422 {
		t.Errorf("a forged cookie: %v %v", res, err)
	}
	if res, err := client.Get(open.URL + "/v1/rollouts"); err != nil || res.StatusCode != 404 {
		t.Errorf("the open listener serves the trainer plane: %v %v", res, err)
	}
}
