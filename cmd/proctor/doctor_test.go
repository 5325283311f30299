package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/internal/config"
	"proctor/sandbox"
	"proctor/sandbox/egress/index/indextest"
	"proctor/sandbox/sandboxtest"
)

// wantCheck holds a check against whether it is fine and words of its detail and remedy.
func wantCheck(t *testing.T, got check, ok bool, detail, remedy string) {
	t.Helper()
	if got.OK != ok || !strings.Contains(got.Detail, detail) || !strings.Contains(got.Remedy, remedy) || (got.Remedy == "") != ok {
		t.Errorf("%+v, want ok %v, %q, %q", got, ok, detail, remedy)
	}
}

func TestCheckEngineAndImage(t *testing.T) {
	ctx := context.Background()
	up := &sandboxtest.Fake{Caps: sandbox.Capabilities{Version: "20.10", Seccomp: true, Unprovable: "no disk quota"}}
	wantCheck(t, checkEngine(ctx, up), true, "20.10; no disk quota", "")
	wantCheck(t, checkImage(ctx, up, "proctor/base:dev"), true, "proctor/base:dev", "")
	wantCheck(t, checkImage(ctx, up, "no-such:x"), false, "is not there", "make image")
	wantCheck(t, checkEngine(ctx, &sandboxtest.Fake{}), false, "version", "seccomp")
	down := &sandboxtest.Fake{Down: fmt.Errorf("%w: gone", sandbox.ErrUnavailable)}
	for name, remedy := range map[string]string{"docker": "make docker", "oci": "runc"} {
		wantCheck(t, checkEngine(ctx, named{down, name}), false, "gone", remedy)
	}
}

// named is an engine under another name.
type named struct {
	sandbox.Engine
	name string
}

func (n named) Name() string { return n.name }

func TestCheckStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, checkStore(dir), true, "is writable", "")
	wantCheck(t, checkStore(filepath.Join(dir, "a", "b")), true, "can be made", "")
	wantCheck(t, checkStore(file), false, "is no folder", "--data")
	wantCheck(t, checkStore("/proc/none"), false, "/proc", "--data")
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("the check left %v", left)
	}
}

func TestCheckBoxd(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "boxd")
	wantCheck(t, checkBoxd(plain), false, plain, "make build")
	if err := os.WriteFile(plain, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, checkBoxd(plain), true, plain, "")
}

func TestCheckJudge(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("asked for %s with %q", r.URL, r.Header)
		}
		w.WriteHeader(status)
	}))
	judge := config.Judge{URL: server.URL + "/v1/", APIKey: "k"}
	ctx := context.Background()
	wantCheck(t, checkJudge(ctx, config.Judge{}), true, "heuristic", "")
	wantCheck(t, checkJudge(ctx, judge), true, "200", "")
	status = http.StatusUnauthorized
	wantCheck(t, checkJudge(ctx, judge), false, "401", "PROCTOR_JUDGE_API_KEY")
	status = http.StatusBadGateway
	wantCheck(t, checkJudge(ctx, judge), false, "502", "judge's server")
	server.Close()
	wantCheck(t, checkJudge(ctx, judge), false, "refused", "judge.url")
	wantCheck(t, checkJudge(ctx, config.Judge{URL: "::"}), false, "::", "judge.url")
}

func TestCheckIndexes(t *testing.T) {
	python := indextest.New(t, indextest.Release{Project: "pip", Version: "1.0", Uploaded: "2020-01-01T00:00:00Z"})
	registry := indextest.NewNPM(t, indextest.Package{Name: "npm", Version: "1.0.0", Published: "2020-01-01T00:00:00Z"})
	undated := indextest.NewNPM(t, indextest.Package{Name: "npm", Version: "1.0.0"})
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	wantCheck(t, checkPython(ctx, config.Config{}, log), true, "none set", "")
	wantCheck(t, checkNPM(ctx, config.Config{}, log), true, "none set", "")
	wantCheck(t, checkPython(ctx, config.Config{PackageIndex: python.URL}, log), true, python.URL, "")
	wantCheck(t, checkNPM(ctx, config.Config{NPMIndex: registry.URL}, log), true, registry.URL, "")
	wantCheck(t, checkNPM(ctx, config.Config{NPMIndex: undated.URL}, log), false, "no times of upload", "set npm_index to a registry")
	wantCheck(t, checkPython(ctx, config.Config{PackageIndex: registry.URL}, log), false, "no project pip", "set package_index to an address")
	wantCheck(t, checkNPM(ctx, config.Config{NPMIndex: "x"}, log), false, "no http or https address", "set npm_index to an address that npm's registry")
}

func TestReportStatusAndText(t *testing.T) {
	fine, missing, down := check{Name: "a", OK: true, Detail: "d"}, check{Name: "b", Detail: "gone", Remedy: "do this"}, check{Name: "c", infra: true, Remedy: "r"}
	for _, row := range []struct {
		checks []check
		status int
	}{{[]check{fine}, exitDone}, {[]check{fine, missing}, exitFailed}, {[]check{missing, down}, exitInfra}} {
		err := examination{OK: len(row.checks) == 1, Checks: row.checks}.verdict()
		var exit *exitError
		if got := errors.As(err, &exit); got != (row.status != exitDone) || got && exit.status != row.status {
			t.Errorf("%+v: %v, want status %d", row.checks, err, row.status)
		}
	}
	var text strings.Builder
	if err := (examination{Checks: []check{fine, missing}}).print(&text, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "FAIL  b") || !strings.Contains(text.String(), "-> do this") {
		t.Error(text.String())
	}
	text.Reset()
	if err := (examination{OK: true, Checks: []check{fine}}).print(&text, true); err != nil || text.String() != `{"ok":true,"checks":[{"name":"a","ok":true,"detail":"d","remedy":""}]}`+"\n" {
		t.Error(text.String(), err)
	}
}
