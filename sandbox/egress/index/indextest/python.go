package indextest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
)

// Release is a version of a project, as one pure wheel.
type Release struct {
	Project, Version string
	Uploaded         string   // RFC 3339
	Requires         []string // of the metadata's Requires-Dist
}

// New serves releases as an index of Python packages until the test ends. Its URL is what pip's --index-url
// takes. Its wheels hold a module, named as the project with "_" for "-", whose V is the version.
func New(t testing.TB, releases ...Release) *Server {
	t.Helper()
	wheels := map[string][]byte{}
	pages := map[string][]map[string]any{}
	for _, r := range releases {
		name, body := wheel(t, r)
		wheels[name] = body
		pages[r.Project] = append(pages[r.Project], map[string]any{
			"filename": name, "url": "/files/" + name, "hashes": map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(body))},
			"upload-time": r.Uploaded, "size": len(body), "yanked": false,
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/{project}/{$}", func(w http.ResponseWriter, r *http.Request) {
		files, ok := pages[r.PathValue("project")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": r.PathValue("project"), "files": files})
	})
	mux.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		body, ok := wheels[r.PathValue("name")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	})
	s := start(t, mux)
	s.URL = s.Origin + "/simple/"
	return s
}

// wheel builds a release's wheel.
func wheel(t testing.TB, r Release) (name string, body []byte) {
	t.Helper()
	module := strings.ReplaceAll(r.Project, "-", "_")
	stem := module + "-" + r.Version
	info := stem + ".dist-info"
	metadata := "Metadata-Version: 2.1\nName: " + r.Project + "\nVersion: " + r.Version + "\n"
	for _, q := range r.Requires {
		metadata += "Requires-Dist: " + q + "\n"
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var record string
	for _, f := range []struct{ name, text string }{
		{module + ".py", "V = " + fmt.Sprintf("%q", r.Version) + "\n"},
		{path.Join(info, "METADATA"), metadata},
		{path.Join(info, "WHEEL"), "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{path.Join(info, "RECORD"), ""},
	} {
		record += f.name + ",,\n"
		if f.text == "" {
			f.text = record
		}
		w, err := z.Create(f.name)
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return stem + "-py3-none-any.whl", b.Bytes()
}
