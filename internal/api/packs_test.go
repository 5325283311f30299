package api

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"proctor/internal/rollouts"
)

// fakePacks swaps "a" for "b", or fails.
type fakePacks struct{ err error }

func (f *fakePacks) PackList() PackList {
	return PackList{Digest: "a", Packs: []PackView{{ID: "core", Version: "1.0.0", Rules: 3, Active: 2}}}
}

func (f *fakePacks) ReloadPacks(context.Context) (PacksReloaded, error) {
	return PacksReloaded{PackList: PackList{Digest: "b"}, Previous: "a", Changed: true}, f.err
}

func TestPacks(t *testing.T) {
	l := newLab(t)
	for _, path := range []string{"GET /v1/packs", "POST /v1/packs/reload"} {
		method, path, _ := strings.Cut(path, " ")
		if got := l.send(method, path, "trainer-key", ""); got.status != 404 {
			t.Errorf("%s without packs: %d", path, got.status)
		}
	}
	held := &fakePacks{}
	srv := httptest.NewServer(New(Options{Rollouts: l.fake, Packs: held, Keys: []Key{{"admin-key", RoleAdmin}, {"trainer-key", RoleTrainer}}}).Handler())
	t.Cleanup(srv.Close)
	l.srv = srv

	var list PackList
	got := l.send("GET", "/v1/packs", "trainer-key", "")
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != 200 || list.Digest != "a" || list.Packs[0].Rules != 3 {
		t.Errorf("list: %d %s %v", got.status, got.body, err)
	}
	if got := l.send("POST", "/v1/packs/reload", "trainer-key", ""); got.status < 400 {
		t.Errorf("a trainer's key reloads: %d", got.status)
	}
	got = l.send("POST", "/v1/packs/reload", "admin-key", "")
	if got.status != 200 || !strings.Contains(got.body, `"previous": "a"`) && !strings.Contains(got.body, `"previous":"a"`) {
		t.Errorf("reload: %d %s", got.status, got.body)
	}
	held.err = &rollouts.Error{Code: "pack_invalid", Detail: "p.yaml:3:5: error: unknown key"}
	got = l.send("POST", "/v1/packs/reload", "admin-key", "")
	if got.status != 422 || !strings.Contains(got.body, "pack_invalid") || !strings.Contains(got.body, "p.yaml:3:5") {
		t.Errorf("bad packs: %d %s", got.status, got.body)
	}
}
