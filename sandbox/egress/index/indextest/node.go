package indextest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"testing"
)

// Package is a version of an npm package.
type Package struct {
	Name, Version string
	Published     string            // RFC 3339
	Requires      map[string]string // dependencies, by name
	Deprecated    string
}

// NewNPM serves packages as an npm registry until the test ends; the last of a name is its latest. Its URL is
// what npm's registry setting takes. Requiring a package gives its version.
func NewNPM(t testing.TB, packages ...Package) *Server {
	t.Helper()
	tarballs := map[string][]byte{}
	documents := map[string]*document{}
	mux := http.NewServeMux()
	s := start(t, mux)
	s.URL = s.Origin + "/npm/"
	for _, p := range packages {
		d := documents[p.Name]
		if d == nil {
			d = &document{Name: p.Name, Tags: map[string]string{}, Versions: map[string]any{}, Time: map[string]string{"created": p.Published}}
			documents[p.Name] = d
		}
		file := path.Base(p.Name) + "-" + p.Version + ".tgz"
		manifest := map[string]any{"name": p.Name, "version": p.Version, "main": "index.js"}
		if p.Requires != nil {
			manifest["dependencies"] = p.Requires
		}
		if p.Deprecated != "" {
			manifest["deprecated"] = p.Deprecated
		}
		body := tarball(t, manifest)
		tarballs[file] = body
		manifest["dist"] = map[string]any{"tarball": s.Origin + "/tarballs/" + file, "shasum": fmt.Sprintf("%x", sha1.Sum(body)), "integrity": integrity(body)}
		d.Versions[p.Version], d.Time[p.Version] = manifest, p.Published
		d.Tags["latest"], d.Time["modified"] = p.Version, p.Published
		d.Readme = "now at " + p.Version
	}
	mux.HandleFunc("GET /npm/{name}", func(w http.ResponseWriter, r *http.Request) {
		d, ok := documents[r.PathValue("name")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d)
	})
	mux.HandleFunc("GET /tarballs/{file}", func(w http.ResponseWriter, r *http.Request) {
		body, ok := tarballs[r.PathValue("file")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(body)
	})
	return s
}

// document is a package's, as registries have it.
type document struct {
	Name     string            `json:"name"`
	Tags     map[string]string `json:"dist-tags"`
	Versions map[string]any    `json:"versions"`
	Time     map[string]string `json:"time"`
	Readme   string            `json:"readme"`
}

func integrity(body []byte) string {
	sum := sha512.Sum512(body)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// tarball builds a version's tarball.
func tarball(t testing.TB, manifest map[string]any) []byte {
	t.Helper()
	described, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"package/package.json": string(described), "package/index.js": fmt.Sprintf("module.exports = %q\n", manifest["version"])}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
