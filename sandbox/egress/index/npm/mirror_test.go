package npm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/indextest"
)

var cutoff = time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)

// row is a version and when it was published; tag is a dist-tag that it has.
type row struct{ number, published, tag string }

// documentOf writes a package's document as a registry has it.
func documentOf(name string, rows ...row) string {
	tags, versions, times := map[string]string{}, map[string]any{}, map[string]any{"created": "2020-01-01T00:00:00.000Z", "modified": "2025-01-01T00:00:00.000Z"}
	for _, r := range rows {
		if r.published != "" {
			times[r.number] = r.published
		}
		if r.tag != "" {
			tags[r.tag] = r.number
		}
		versions[r.number] = map[string]any{
			"name": name, "version": r.number, "description": "as of " + r.number, "scripts": map[string]string{"install": "make"}, "deprecated": "use 9.9.9",
			"dependencies": map[string]string{"helper": "^1.0.0"}, "gitHead": "abc",
			"dist": map[string]any{"tarball": "../files/" + url.PathEscape(name) + "-" + r.number + ".tgz", "shasum": "aa", "integrity": "sha512-bb",
				"attestations": map[string]string{"url": "http://elsewhere.test/"}},
		}
	}
	text, err := json.Marshal(map[string]any{"_id": name, "_rev": "77-x", "name": name, "dist-tags": tags, "versions": versions, "time": times,
		"description": "as of 9.9.9", "readme": "upgrade to 9.9.9", "users": map[string]bool{"me": true}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// upstream is a registry with a few packages. Asked counts what it was asked for.
func upstream(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	own := []row{{"1.2.0", "2022-01-01T00:00:00.000Z", ""}, {"1.3.0", "2022-06-01T00:00:00.000Z", "stable"}, {"1.3.1", "2022-06-02T00:00:00.000Z", ""},
		{"1.4.0-rc.1", "2022-07-01T00:00:00.000Z", "next"}, {"1.4.0", "2022-08-01T00:00:00.000Z", ""}, {"2.0.0", "2022-09-01T00:00:00.000Z", ""},
		{"1.3.2", "2024-01-01T00:00:00.000Z", ""}, {"2.1.0", "2024-02-01T00:00:00.000Z", "latest"}, {"odd", "2022-01-01T00:00:00.000Z", ""}}
	pages := map[string]string{
		"acme-intervals":   documentOf("acme-intervals", own...),
		"@acme/intervals":  documentOf("@acme/intervals", own...),
		"helper":           documentOf("helper", row{"1.0.0", "2023-04-30T23:59:59.999Z", "old"}, row{"2.0.0", "2023-05-01T00:00:00.000Z", "latest"}, row{"0.9.0", "", ""}),
		"early":            documentOf("early", row{"1.0.0-beta.1", "2023-01-01T00:00:00.000Z", ""}, row{"1.0.0-beta.2", "2023-02-01T00:00:00.000Z", ""}, row{"1.0.0", "2024-01-01T00:00:00.000Z", "latest"}),
		"lines":            documentOf("lines", row{"4.9.0", "2022-01-01T00:00:00.000Z", "latest"}, row{"5.0.0", "2022-02-01T00:00:00.000Z", "next"}),
		"moved":            documentOf("moved", row{"4.9.0", "2022-01-01T00:00:00.000Z", ""}, row{"5.0.0", "2022-02-01T00:00:00.000Z", "next"}, row{"4.9.1", "2024-01-01T00:00:00.000Z", "latest"}),
		"late":             documentOf("late", row{"1.0.0", "2024-01-01T00:00:00.000Z", "latest"}),
		"undated":          documentOf("undated", row{"1.0.0", "", "latest"}),
		"taken-back":       `{"name":"taken-back","time":{"created":"2020-01-01T00:00:00.000Z","unpublished":{"versions":["1.0.0"]}}}`,
		"broken":           "{",
		"no-document":      `{"ok":true}`,
		"nothing-to-fetch": `{"versions":{"1.0.0":{"version":"1.0.0"},"1.0.1":{"dist":{}},"1.0.2":{"dist":{"tarball":"file:///etc/passwd"}},"1.0.3":[]},"time":{"1.0.0":"2020-01-01T00:00:00Z","1.0.1":"2020-01-01T00:00:00Z","1.0.2":"2020-01-01T00:00:00Z","1.0.3":"2020-01-01T00:00:00Z"}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if name, ok := strings.CutPrefix(r.URL.EscapedPath(), "/files/"); ok {
			fmt.Fprint(w, "bytes of "+name)
			return
		}
		name, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/root/"))
		switch body, ok := pages[name]; {
		case name == "down":
			http.Error(w, "no", http.StatusInternalServerError)
		case !ok || strings.Contains(r.URL.EscapedPath()[len("/root/"):], "/"):
			http.NotFound(w, r)
		case r.Header.Get("Accept") != "application/json":
			fmt.Fprint(w, "{}")
		default:
			fmt.Fprint(w, body)
		}
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

func testMirror(t *testing.T) (*Mirror, *atomic.Int64) {
	t.Helper()
	s, asked := upstream(t)
	m, err := New(index.Options{Upstream: s.URL + "/root"})
	if err != nil {
		t.Fatal(err)
	}
	return m, asked
}

// shown is a document as an installer reads it.
type shown struct {
	Name     string
	Tags     map[string]string `json:"dist-tags"`
	Versions map[string]struct {
		Version, Deprecated, GitHead string
		Script                       bool `json:"hasInstallScript"`
		Dist                         map[string]any
	}
	Time     map[string]string
	Modified string
}

const installer = typeShort + "; q=1.0, application/json; q=0.8, */*"

// ask gives a package's document; false for 404.
func ask(t *testing.T, h http.Handler, path, accept string) (shown, string, bool) {
	t.Helper()
	status, body := indextest.Get(h, path, accept)
	if status == http.StatusNotFound {
		return shown{}, body, false
	}
	var d shown
	if err := json.Unmarshal([]byte(body), &d); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %v %q", path, status, err, body)
	}
	return d, body, true
}

func TestVersions(t *testing.T) {
	m, _ := testMirror(t)
	before := "1.2.0 1.3.0 1.3.1"
	for _, tc := range []struct {
		name, pkg string
		rule      index.Rule
		want      string // numbers in order
		tags      string
	}{
		{"own package before its fix", "acme-intervals", index.Rule{Package: "acme-intervals", Fix: "1.4.0", Base: "1.3.0"}, before, "latest=1.3.1 stable=1.3.0"},
		{"a fix as tasks write it", "acme-intervals", index.Rule{Package: "Acme-Intervals", Fix: "1.4"}, before, "latest=1.3.1 stable=1.3.0"},
		{"the fix came before its release", "acme-intervals", index.Rule{Package: "acme-intervals", Fix: "v1.4.0-rc.1"}, before, "latest=1.3.1 stable=1.3.0"},
		{"one before the release is not the fix", "acme-intervals", index.Rule{Package: "acme-intervals", Fix: "1.4.0-rc.2"}, before + " 1.4.0-rc.1", "latest=1.3.1 next=1.4.0-rc.1 stable=1.3.0"},
		{"no fix known: nothing later than the base", "acme-intervals", index.Rule{Package: "acme-intervals", Base: "1.3.0"}, "1.2.0 1.3.0", "latest=1.3.0 stable=1.3.0"},
		{"neither can be told", "acme-intervals", index.Rule{Package: "acme-intervals", Fix: "soon", Base: "now"}, "", ""},
		{"scoped", "@acme/intervals", index.Rule{Package: "@acme/intervals", Fix: "1.4.0"}, before, "latest=1.3.1 stable=1.3.0"},
		{"of another scope only the time counts", "@acme/intervals", index.Rule{Package: "intervals", Fix: "1.4.0"},
			before + " 1.4.0 1.4.0-rc.1 2.0.0 odd", "latest=2.0.0 next=1.4.0-rc.1 stable=1.3.0"},
		{"the very moment is too late, and so is no time", "helper", index.Rule{}, "1.0.0", "latest=1.0.0 old=1.0.0"},
		{"nothing but what came before a release", "early", index.Rule{}, "1.0.0-beta.1 1.0.0-beta.2", "latest=1.0.0-beta.2"},
		{"a latest that exists stays", "lines", index.Rule{}, "4.9.0 5.0.0", "latest=4.9.0 next=5.0.0"},
		{"one that does not, gives way to a lower one", "moved", index.Rule{}, "4.9.0 5.0.0", "latest=4.9.0 next=5.0.0"},
		{"a later package does not exist", "late", index.Rule{}, "", ""},
		{"nor does one without times", "undated", index.Rule{}, "", ""},
		{"nor one that was taken back", "taken-back", index.Rule{}, "", ""},
		{"nor one without anything to fetch", "nothing-to-fetch", index.Rule{}, "", ""},
		{"nor one that is not there", "absent", index.Rule{}, "", ""},
	} {
		tc.rule.Before = cutoff
		for _, accept := range []string{installer, "application/json"} {
			d, body, _ := ask(t, m.Handler(tc.rule), "/"+strings.Replace(tc.pkg, "/", "%2f", 1), accept)
			var tags []string
			for _, tag := range slices.Sorted(maps.Keys(d.Tags)) {
				tags = append(tags, tag+"="+d.Tags[tag])
			}
			if got := strings.Join(slices.Sorted(maps.Keys(d.Versions)), " "); got != tc.want || strings.Join(tags, " ") != tc.tags {
				t.Errorf("%s (%s): %q %q, want %q %q", tc.name, accept, got, tags, tc.want, tc.tags)
			}
			if _, absent := indextest.Get(m.Handler(tc.rule), "/absent", accept); tc.want == "" && body != absent {
				t.Errorf("%s: %q, and a package that is not there: %q", tc.name, body, absent)
			}
		}
	}
	if _, _, ok := ask(t, m.Handler(index.Rule{}), "/helper", ""); ok {
		t.Error("a rule without a time shows something")
	}
}

// What a document says beside its versions is of what exists.
func TestDocuments(t *testing.T) {
	m, asked := testMirror(t)
	h := m.Handler(index.Rule{Before: cutoff, Package: "@acme/intervals", Fix: "1.4.0"})
	short, body, _ := ask(t, h, "/@acme%2Fintervals", installer)
	v := short.Versions["1.3.1"]
	if short.Name != "@acme/intervals" || short.Modified != "2022-06-02T00:00:00.000Z" || short.Time != nil || !v.Script || v.GitHead != "" || v.Deprecated != "" {
		t.Errorf("%s", body)
	}
	if v.Dist["tarball"] != "http://127.0.0.13/@acme/intervals/-/intervals-1.3.1.tgz" || v.Dist["integrity"] != "sha512-bb" || v.Dist["shasum"] != "aa" {
		t.Errorf("%v", v.Dist)
	}
	if d, body, _ := ask(t, h, "/helper", installer); d.Versions["1.0.0"].Deprecated != "this version is deprecated" {
		t.Errorf("%s", body)
	}
	full, whole, _ := ask(t, h, "/@acme/intervals", "application/json")
	if full.Time["modified"] != "2022-06-02T00:00:00.000Z" || full.Time["created"] != "2020-01-01T00:00:00.000Z" || len(full.Time) != 5 || full.Versions["1.3.0"].GitHead != "abc" {
		t.Errorf("%s", whole)
	}
	if !strings.Contains(whole, `"description":"as of 1.3.1"`) {
		t.Errorf("%s", whole)
	}
	for _, text := range []string{body, whole} {
		for _, later := range []string{"9.9.9", "1.3.2", "1.4.0", "2024", "2025", "_rev", "users", "elsewhere", "files"} {
			if strings.Contains(text, later) {
				t.Errorf("%q in %s", later, text)
			}
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the upstream was asked %d times for two packages", n)
	}
}

func TestPaths(t *testing.T) {
	m, _ := testMirror(t)
	h := m.Handler(index.Rule{Before: cutoff, Package: "acme-intervals", Fix: "1.4.0"})
	for path, want := range map[string]string{
		"/helper/-/helper-1.0.0.tgz":                 "bytes of helper-1.0.0.tgz",
		"/@acme/intervals/-/intervals-1.4.0.tgz":     "bytes of @acme%2Fintervals-1.4.0.tgz",
		"/@acme%2fintervals/-/intervals-1.4.0.tgz":   "bytes of @acme%2Fintervals-1.4.0.tgz",
		"/acme-intervals/1.3.0":                      `"version":"1.3.0"`,
		"/acme-intervals/latest":                     `"version":"1.3.1"`,
		"/@acme/intervals/next":                      `"version":"1.4.0-rc.1"`,
		"/acme-intervals/-/acme-intervals-1.4.0.tgz": "",
		"/acme-intervals/-/acme-intervals-1.3.2.tgz": "",
		"/acme-intervals/-/helper-1.0.0.tgz":         "",
		"/acme-intervals/1.4.0":                      "",
		"/acme-intervals/next":                       "",
		"/helper/-/helper-2.0.0.tgz":                 "",
		"/helper/-/..%2f..%2fhelper-1.0.0.tgz":       "",
		"/-/v1/search?text=acme":                     "",
		"/-/all":                                     "",
		"/-/whoami":                                  "",
		"/":                                          "",
		"/..%2fhelper":                               "",
		"/down/1.0.0/2":                              "",
	} {
		status, body := indextest.Get(h, path, "*/*")
		if want != "" && (status != http.StatusOK || !strings.Contains(body, want)) || want == "" && (status != http.StatusNotFound || body != `{"error":"Not found"}`) {
			t.Errorf("%s: %d %q, want %q", path, status, body, want)
		}
	}
	for path, want := range map[string]int{"/helper": http.StatusMethodNotAllowed, "/-/npm/v1/security/advisories/bulk": http.StatusNotFound, "/-/user/org.couchdb.user:me": http.StatusNotFound} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != want {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
}

func TestUpstreamsThatWillNotDo(t *testing.T) {
	m, _ := testMirror(t)
	for _, name := range []string{"down", "broken", "no-document"} {
		if status, body := indextest.Get(m.Handler(index.Rule{Before: cutoff}), "/"+name, installer); status != http.StatusBadGateway || strings.Contains(body, "root") {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	ctx := context.Background()
	if err := m.Probe(ctx, "undated"); !errors.Is(err, index.ErrUndated) {
		t.Error(err)
	}
	if err := m.Probe(ctx, "absent"); err == nil || !strings.Contains(err.Error(), "no package absent") {
		t.Error(err)
	}
	if err := m.Probe(ctx, "helper"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "ftp://x.test", "x.test", "http://"} {
		if _, err := New(index.Options{Upstream: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// The user or token of an upstream is sent to it, and to nobody else, not by a redirect either; errors do not
// show it.
func TestUpstreamUser(t *testing.T) {
	for user, want := range map[string]string{"me:secret": "Basic bWU6c2VjcmV0", "secret": "Bearer secret"} {
		var seen []string
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, "other "+r.Header.Get("Authorization"))
		}))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, "own "+r.Header.Get("Authorization"))
			switch r.URL.Path {
			case "/p":
				_, _ = io.WriteString(w, strings.Replace(documentOf("p", row{"1.0.0", "2020-01-01T00:00:00Z", "latest"}), "../files", "/files", 1))
			case "/files/p-1.0.0.tgz":
				http.Redirect(w, r, "/again", http.StatusFound)
			case "/again":
				http.Redirect(w, r, other.URL, http.StatusFound)
			case "/loop":
				http.Redirect(w, r, "/loop", http.StatusFound)
			}
		}))
		m, err := New(index.Options{Upstream: strings.Replace(s.URL, "http://", "http://"+user+"@", 1)})
		if err != nil {
			t.Fatal(err)
		}
		h := m.Handler(index.Rule{Before: cutoff})
		indextest.Get(h, "/p/-/p-1.0.0.tgz", "")
		if all := []string{"own " + want, "own " + want, "own " + want, "other "}; !slices.Equal(seen, all) {
			t.Errorf("%q, want %q", seen, all)
		}
		if status, _ := indextest.Get(h, "/loop", ""); status != http.StatusBadGateway || len(seen) > 12 {
			t.Errorf("a loop: %d, %d requests", status, len(seen))
		}
		s.Close()
		if err := m.Probe(t.Context(), "q"); err == nil || strings.Contains(err.Error()+m.Upstream(), "secret") {
			t.Error(err, m.Upstream())
		}
		other.Close()
	}
}

// A tarball that breaks off is no whole one.
func TestBrokenTarball(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/p" {
			_, _ = io.WriteString(w, strings.Replace(documentOf("p", row{"1.0.0", "2020-01-01T00:00:00Z", "latest"}), "../files", "/files", 1))
			return
		}
		_, _ = io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	m, err := New(index.Options{Upstream: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(m.Handler(index.Rule{Before: cutoff}))
	defer door.Close()
	answer, err := http.Get(door.URL + "/p/-/p-1.0.0.tgz")
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("%q looks whole", body)
	}
}
