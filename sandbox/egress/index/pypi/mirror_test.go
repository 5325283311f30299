package pypi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// upstream is an index with a few projects. Asked counts what it was asked for.
func upstream(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	pages := map[string]string{
		"acme-intervals": page("acme.intervals",
			row("acme_intervals-1.2-py3-none-any.whl", "2022-01-01T00:00:00Z"), row("acme-intervals-1.2.tar.gz", "2022-01-01T00:00:00Z"),
			row("acme_intervals-1.3.post1-py3-none-any.whl", "2022-06-01T00:00:00.123Z"),
			row("acme_intervals-1.4rc1-py3-none-any.whl", "2022-07-01T00:00:00Z"), row("acme_intervals-1.4-py3-none-any.whl", "2022-08-01T00:00:00Z"),
			row("acme_intervals-1.2.1-py3-none-any.whl", "2024-01-01T00:00:00Z"), row("acme_intervals-1!0.1-py3-none-any.whl", "2022-01-01T00:00:00Z"),
			row("odd.whl", "2022-01-01T00:00:00Z")),
		"helper":  page("helper", row("helper-1.0-py3-none-any.whl", "2023-04-30T23:59:59Z"), row("helper-2.0-py3-none-any.whl", "2023-05-01T00:00:00Z"), row("helper-0.9.tar.gz", "")),
		"late":    page("late", row("late-1.0-py3-none-any.whl", "2024-01-01T00:00:00Z")),
		"undated": page("undated", row("undated-1.0-py3-none-any.whl", "")),
		"broken":  "{", "version-9": `{"meta":{"api-version":"9.0"},"files":[]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if name, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
			fmt.Fprint(w, "bytes of "+name)
			return
		}
		name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/root/"), "/")
		body, ok := pages[name]
		switch {
		case name == "down":
			http.Error(w, "no", http.StatusInternalServerError)
		case name == "only-html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=x>x</a>")
		case !ok || !strings.HasSuffix(r.URL.Path, "/"):
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", typeJSON)
			fmt.Fprint(w, body)
		}
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

func row(name, uploaded string) string {
	return fmt.Sprintf(`{"filename": %q, "url": "../../files/%s", "hashes": {"sha256": "abc"}, "requires-python": ">=3.8", "core-metadata": {"sha256": "def"}, "yanked": false, "upload-time": %q}`, name, url.PathEscape(name), uploaded)
}

func page(name string, rows ...string) string {
	return fmt.Sprintf(`{"meta": {"api-version": "1.1"}, "name": %q, "files": [%s]}`, name, strings.Join(rows, ","))
}

func newMirror(t *testing.T) (*Mirror, *atomic.Int64) {
	t.Helper()
	s, asked := upstream(t)
	m, err := New(index.Options{Upstream: s.URL + "/root"})
	if err != nil {
		t.Fatal(err)
	}
	return m, asked
}

// names gives the files of a project's page.
func names(t *testing.T, h http.Handler, project string) []string {
	t.Helper()
	status, body := indextest.Get(h, "/simple/"+project+"/", typeJSON+", text/html;q=0.1")
	if status == http.StatusNotFound {
		return nil
	}
	var l rawListing
	if err := json.Unmarshal([]byte(body), &l); err != nil || status != http.StatusOK || l.Meta.Version != "1.0" {
		t.Fatalf("%d %v %q", status, err, body)
	}
	var all []string
	for _, f := range l.Files {
		if f.URL != "/files/"+Normalize(project)+"/"+url.PathEscape(f.Filename) {
			t.Errorf("address %q", f.URL)
		}
		all = append(all, f.Filename)
	}
	return all
}

func TestListing(t *testing.T) {
	m, _ := newMirror(t)
	own := []string{"acme_intervals-1.2-py3-none-any.whl", "acme-intervals-1.2.tar.gz", "acme_intervals-1.3.post1-py3-none-any.whl"}
	for _, tc := range []struct {
		name, project string
		rule          index.Rule
		want          []string
	}{
		{"own package before its fix", "acme-intervals", index.Rule{Before: cutoff, Package: "Acme.Intervals", Fix: "1.4", Base: "1.3"}, own},
		{"named otherwise", "Acme__Intervals", index.Rule{Before: cutoff, Package: "acme_intervals", Fix: "1.4"}, own},
		{"no fix known: nothing later than the base", "acme-intervals", index.Rule{Before: cutoff, Package: "acme-intervals", Base: "1.3"},
			[]string{"acme_intervals-1.2-py3-none-any.whl", "acme-intervals-1.2.tar.gz", "acme_intervals-1.3.post1-py3-none-any.whl"}},
		{"of another task only the time counts", "acme-intervals", index.Rule{Before: cutoff, Package: "other", Fix: "0.1"},
			slices.Concat(own, []string{"acme_intervals-1.4rc1-py3-none-any.whl", "acme_intervals-1.4-py3-none-any.whl", "acme_intervals-1!0.1-py3-none-any.whl", "odd.whl"})},
		{"the very moment is too late, and so is no time", "helper", index.Rule{Before: cutoff}, []string{"helper-1.0-py3-none-any.whl"}},
		{"a later project does not exist", "late", index.Rule{Before: cutoff}, nil},
		{"nor does one without times", "undated", index.Rule{Before: cutoff}, nil},
		{"nor one that is not there", "absent", index.Rule{Before: cutoff}, nil},
		{"no time given: nothing", "helper", index.Rule{}, nil},
	} {
		if got := names(t, m.Handler(tc.rule), tc.project); !slices.Equal(sorted(got), sorted(tc.want)) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func sorted(all []string) []string { all = slices.Clone(all); slices.Sort(all); return all }

func TestHTMLListing(t *testing.T) {
	m, asked := newMirror(t)
	h := m.Handler(index.Rule{Before: cutoff})
	status, body := indextest.Get(h, "/simple/helper/", "text/html")
	want := `<a href="/files/helper/helper-1.0-py3-none-any.whl#sha256=abc" data-requires-python="&gt;=3.8" data-core-metadata="sha256=def">helper-1.0-py3-none-any.whl</a>`
	if status != http.StatusOK || !strings.Contains(body, want) || strings.Count(body, "<a ") != 1 {
		t.Errorf("%d %s", status, body)
	}
	for range 5 {
		indextest.Get(h, "/simple/helper/", typeJSON)
		indextest.Get(h, "/simple/absent/", typeJSON)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the upstream was asked %d times for two projects", n)
	}
}

func TestFiles(t *testing.T) {
	m, _ := newMirror(t)
	h := m.Handler(index.Rule{Before: cutoff, Package: "acme-intervals", Fix: "1.4"})
	for path, want := range map[string]string{
		"/files/helper/helper-1.0-py3-none-any.whl":                 "bytes of helper-1.0-py3-none-any.whl",
		"/files/helper/helper-1.0-py3-none-any.whl.metadata":        "bytes of helper-1.0-py3-none-any.whl.metadata",
		"/files/acme-intervals/acme_intervals-1.2-py3-none-any.whl": "bytes of acme_intervals-1.2-py3-none-any.whl",
		"/files/helper/helper-2.0-py3-none-any.whl":                 "",
		"/files/acme-intervals/acme_intervals-1.4-py3-none-any.whl": "",
		"/files/helper/acme_intervals-1.4-py3-none-any.whl":         "",
		"/files/helper/..%2f..%2fx":                                 "",
		"/files/helper/.metadata":                                   "",
		"/simple/":                                                  "",
		"/":                                                         "",
	} {
		status, body := indextest.Get(h, path, "*/*")
		if want != "" && (status != http.StatusOK || body != want) || want == "" && status != http.StatusNotFound {
			t.Errorf("%s: %d %q, want %q", path, status, body, want)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/simple/helper/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %d", w.Code)
	}
}

func TestUpstreamsThatWillNotDo(t *testing.T) {
	m, _ := newMirror(t)
	for _, project := range []string{"down", "broken", "version-9", "only-html"} {
		if status, body := indextest.Get(m.Handler(index.Rule{Before: cutoff}), "/simple/"+project+"/", typeJSON); status != http.StatusBadGateway {
			t.Errorf("%s: %d %q", project, status, body)
		}
	}
	for project, want := range map[string]error{"undated": index.ErrUndated, "only-html": index.ErrUndated} {
		if err := m.Probe(context.Background(), project); !errors.Is(err, want) {
			t.Errorf("%s: %v", project, err)
		}
	}
	if err := m.Probe(context.Background(), "helper"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "ftp://x.test", "x.test/simple", "http://"} {
		if _, err := New(index.Options{Upstream: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// The user of an upstream is sent to it, and to nobody else; errors do not show the password.
func TestUpstreamUser(t *testing.T) {
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, "other "+r.Header.Get("Authorization"))
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		seen = append(seen, "own "+user)
		w.Header().Set("Content-Type", typeJSON)
		_, _ = io.WriteString(w, page("p", row("p-1.whl", "2020-01-01T00:00:00Z"), strings.Replace(row("q-1.whl", "2020-01-01T00:00:00Z"), "../../files", other.URL, 1)))
	}))
	defer s.Close()
	m, err := New(index.Options{Upstream: strings.Replace(s.URL, "http://", "http://me:secret@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	h := m.Handler(index.Rule{Before: cutoff})
	indextest.Get(h, "/files/p/p-1.whl", "")
	indextest.Get(h, "/files/p/q-1.whl", "")
	if want := []string{"own me", "own me", "other "}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if strings.Contains(m.Upstream(), "secret") {
		t.Error(m.Upstream())
	}
}

func TestVersionOf(t *testing.T) {
	for name, want := range map[string]string{
		"acme_intervals-1.2-py3-none-any.whl": "1.2", "acme-intervals-1.2.tar.gz": "1.2", "Acme.Intervals-1.2.post1.zip": "1.2.post1",
		"acme-intervals-extra-1.2.tar.gz": "extra", "other-1.2.tar.gz": "", "acme-intervals": "", "": "",
	} {
		if got := versionOf("acme-intervals", name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, tc := range []struct {
		a, b string
		want int
	}{{"1.2", "1.2.0", 0}, {"1.10", "1.9", 1}, {"1.4rc1", "1.4", 0}, {"2", "1.99", 1}, {"v1.0", "1.0.1", -1}} {
		a, _ := releaseOf(tc.a)
		b, _ := releaseOf(tc.b)
		if got := a.compare(b); got != tc.want && got*tc.want <= 0 {
			t.Errorf("%s against %s: %d", tc.a, tc.b, got)
		}
	}
	for _, none := range []string{"", "x", "1!2", "99999999999.1"} {
		if r, ok := releaseOf(none); ok && none != "99999999999.1" {
			t.Errorf("%q: %v", none, r)
		}
	}
}

// FuzzParseListing feeds the reader of listings: what it gives can be written again both ways, and no file
// of a rule without a time exists.
func FuzzParseListing(f *testing.F) {
	f.Add([]byte(page("p", row("p-1.0.tar.gz", "2020-01-01T00:00:00Z"))))
	f.Add([]byte(`{"meta":{"api-version":"1.0"},"files":[{"filename":"a-1.whl","url":"x","yanked":"why","core-metadata":true}]}`))
	base, _ := url.Parse("http://index.test/simple/p/")
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseListing(b, base)
		if err != nil {
			return
		}
		if len(l.under("p", index.Rule{}).Files) > 0 {
			t.Error("files without a cut-off")
		}
		if _, err := l.json("p"); err != nil {
			t.Error(err)
		}
		if text := string(l.html("p")); strings.Count(text, "<a ") != len(l.Files) {
			t.Errorf("%d files in %q", len(l.Files), text)
		}
	})
}
