package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// proctorHere runs a command in this process and gives what it printed.
func proctorHere(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), err
}

// An export fetches ahead, and writes what one rollout after another gives: in their order, each once, those
// without tokens told and left out.
func TestExportOfMany(t *testing.T) {
	url := toyWorld(t)
	t.Setenv("PROCTOR_URL", url)
	t.Setenv("PROCTOR_API_KEY", toyKey)
	toyTrain(t, url, "--steps", "1", "--n", "2")
	bare := toyPost(t, url+"/v1/rollouts", `{"task_id": "toy-0"}`)
	toyDelete(t, url+"/v1/rollouts/"+bare)
	file := filepath.Join(t.TempDir(), "all.jsonl")
	if _, err := proctorHere(t, "export", "--all", "--format", "slime", "--out", file); err == nil {
		t.Error("a rollout without tokens is exported")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(text)) {
		var d struct {
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.Session)
	}
	if len(ids) != 8 {
		t.Fatalf("%d documents, want one each of 8 rollouts", len(ids))
	}
	var one strings.Builder
	for _, id := range ids {
		out, err := proctorHere(t, "export", id, "--format", "slime")
		if err != nil {
			t.Fatal(err)
		}
		one.WriteString(out)
	}
	if one.String() != string(text) {
		t.Error("exporting all is not exporting each")
	}
	twice, err := proctorHere(t, append([]string{"export", "--format", "slime"}, ids[0], ids[1], ids[0])...)
	if want := strings.Join(strings.SplitAfterN(string(text), "\n", 3)[:2], ""); err != nil || twice != want {
		t.Errorf("naming one twice gives %d bytes, want %d: %v", len(twice), len(want), err)
	}
	if _, err := proctorHere(t, "export", ids[0], "r_nobody", ids[1], "--format", "slime"); err == nil {
		t.Error("a rollout that is not there is exported")
	}
}

// toyPost makes a rollout and gives its id.
func toyPost(t *testing.T, url, body string) string {
	t.Helper()
	var made struct{ ID string }
	toyDo(t, http.MethodPost, url, body, &made)
	return made.ID
}

func toyDelete(t *testing.T, url string) {
	t.Helper()
	toyDo(t, http.MethodDelete, url, "", nil)
}

func toyDo(t *testing.T, method, url, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+toyKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, url, res.Status)
	}
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
}
