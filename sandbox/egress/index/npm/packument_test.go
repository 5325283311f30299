package npm

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"proctor/sandbox/egress/index"
)

func TestOrder(t *testing.T) {
	ordered := []string{"odd", "0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0", "2.0.0"}
	for i := 1; i < len(ordered); i++ {
		a, b := version{Number: ordered[i-1], order: orderOf(ordered[i-1])}, version{Number: ordered[i], order: orderOf(ordered[i])}
		if compare(a, b) >= 0 || compare(b, a) <= 0 {
			t.Errorf("%s is not below %s", a.Number, b.Number)
		}
	}
	for _, none := range []string{"", "x", "1.2.3.4", "1.2.x", "01.2.3", "latest"} {
		if orderOf(none) != "" {
			t.Errorf("%q is a version", none)
		}
	}
}

func TestRoute(t *testing.T) {
	for path, want := range map[string]wanted{
		"/a":                           {name: "a"},
		"/@s%2fa":                      {name: "@s/a"},
		"/@s/a":                        {name: "@s/a"},
		"/@s/a/1.0.0":                  {name: "@s/a", selector: "1.0.0"},
		"/@s%2Fa/latest":               {name: "@s/a", selector: "latest"},
		"/a/-/a-1.0.0.tgz":             {name: "a", tarball: "1.0.0"},
		"/@s/a/-/a-1.0.0-b.tgz":        {name: "@s/a", tarball: "1.0.0-b"},
		"/JSONStream/1.0.0%2Bb":        {name: "JSONStream", selector: "1.0.0+b"},
		"/-":                           {},
		"/@s":                          {},
		"/a/":                          {},
		"/a//":                         {},
		"/a/-":                         {},
		"/a/-/b-1.0.0.tgz":             {},
		"/a/-/a-.tgz":                  {},
		"/a/b/c":                       {},
		"/.hidden":                     {},
		"/a%2fb":                       {},
		"/a%00":                        {},
		"/%zz":                         {},
		"/" + strings.Repeat("a", 215): {},
	} {
		got, ok := route(path)
		if want == (wanted{}) && ok || want != (wanted{}) && (!ok || got != want) {
			t.Errorf("%s: %+v %v", path, got, ok)
		}
	}
}

// FuzzParsePackument feeds the reader of documents: what it gives can be written both ways, names no place
// but the Mirror's, and nothing of a rule without a time exists.
func FuzzParsePackument(f *testing.F) {
	f.Add([]byte(documentOf("p", row{"1.0.0", "2020-01-01T00:00:00Z", "latest"}, row{"2.0.0-b", "2021-01-01T00:00:00Z", "next"})))
	f.Add([]byte(`{"versions":{"x":{"dist":{"tarball":"/t"},"deprecated":true,"scripts":{"install":"x"}}},"time":{"x":"2020-01-01T00:00:00Z","unpublished":{}}}`))
	f.Add([]byte(`{"versions":{"x":{"dist":{"tarball":"0"}}},"time":{"x":"0000-01-01T00:00:00Z"}}`))
	base, err := url.Parse("http://registry.test/p")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _, err := parsePackument(b, "p", Origin, base)
		if err != nil {
			return
		}
		if p.under("p", index.Rule{}) != nil {
			t.Error("versions without a cut-off")
		}
		p = p.under("p", index.Rule{Before: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)})
		if p == nil {
			return
		}
		if _, ok := p.pick(latest); !ok {
			t.Errorf("no latest in %+v", p)
		}
		for _, write := range []func(io.Writer, string) error{p.writeFull, p.writeShort} {
			var text bytes.Buffer
			if err := write(&text, "p"); err != nil {
				t.Fatal(err)
			}
			checkTarballs(t, text.Bytes(), len(p.Versions))
		}
	})
}

func checkTarballs(t *testing.T, text []byte, n int) {
	t.Helper()
	var d struct {
		Versions map[string]map[string]json.RawMessage `json:"versions"`
	}
	if err := json.Unmarshal(text, &d); err != nil || len(d.Versions) != n {
		t.Fatalf("%v, %d of %d versions in %q", err, len(d.Versions), n, text)
	}
	for number, manifest := range d.Versions {
		var dist map[string]json.RawMessage
		if err := json.Unmarshal(manifest["dist"], &dist); err != nil || !strings.HasPrefix(textOf(dist["tarball"]), Origin+"/p/-/p-") {
			t.Errorf("%s: %v %s", number, err, manifest["dist"])
		}
	}
}

// FuzzRoute feeds the reader of paths: what it takes for a package's name is one, and no way up.
func FuzzRoute(f *testing.F) {
	f.Add("/@s%2fa/-/a-1.0.0.tgz")
	f.Add("/a/../b")
	f.Fuzz(func(t *testing.T, path string) {
		w, ok := route(path)
		if ok && (!nameForm.MatchString(w.name) || strings.Count(w.name, "/") > 1 || addressOf(url.URL{Scheme: "http", Host: "x.test", Path: "/r/"}, w.name).EscapedPath() == "/r/") {
			t.Errorf("%q: %+v", path, w)
		}
	})
}
