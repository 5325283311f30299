package keys

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKeysComeAndGo(t *testing.T) {
	data := t.TempDir()
	ring, err := Open(data, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	role := func(secret string) string {
		ring.looked = time.Time{} // the clock is not waited for
		_, role := ring.Find(sha256.Sum256([]byte(secret)))
		return role
	}
	a, err := Add(data, "ci", "trainer")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Add(data, "eyes", "reviewer")
	if err != nil || a == b || !strings.HasPrefix(b, "rk_") {
		t.Fatalf("%q %q %v", a, b, err)
	}
	if role(a) != "trainer" || role(b) != "reviewer" || role("x") != "" || role("") != "" {
		t.Errorf("roles %q %q %q", role(a), role(b), role("x"))
	}
	if _, err := Add(data, "ci", "admin"); !errors.Is(err, ErrTaken) {
		t.Errorf("a second ci: %v", err)
	}
	body, err := os.ReadFile(file(data))
	if err != nil || strings.Contains(string(body), a) {
		t.Errorf("the file holds a secret, or cannot be read: %v", err)
	}
	if info, err := os.Stat(file(data)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := Remove(data, "ci"); err != nil {
		t.Fatal(err)
	}
	if err := Remove(data, "ci"); !errors.Is(err, ErrUnknown) {
		t.Errorf("removed twice: %v", err)
	}
	if role(a) != "" || role(b) != "reviewer" {
		t.Error("a removed key works, or another does not")
	}
}

func TestBadKeys(t *testing.T) {
	data := t.TempDir()
	for _, c := range [][2]string{{"", "admin"}, {"A", "admin"}, {"../x", "admin"}, {"x", "root"}, {"x", ""}} {
		if _, err := Add(data, c[0], c[1]); err == nil {
			t.Errorf("%q is taken", c)
		}
	}
	for name, body := range map[string]string{
		"no JSON": "{", "bad role": `{"keys": [{"name": "x", "role": "god", "sha256": "` + strings.Repeat("0", 64) + `"}]}`, "bad hash": `{"keys": [{"name": "x", "role": "admin", "sha256": "00"}]}`,
	} {
		if err := os.MkdirAll(filepath.Dir(file(data)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(data), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(data, nil); err == nil || !strings.Contains(err.Error(), "keys.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadFileLater keeps what was read before.
func TestBadFileLater(t *testing.T) {
	data := t.TempDir()
	secret, err := Add(data, "x", "admin")
	if err != nil {
		t.Fatal(err)
	}
	warned := 0
	ring, err := Open(data, func(error) { warned++ })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file(data), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	ring.looked, ring.changed = time.Time{}, time.Time{}
	if _, role := ring.Find(sha256.Sum256([]byte(secret))); role != "admin" || warned != 1 {
		t.Errorf("role %q, warned %d times", role, warned)
	}
}
