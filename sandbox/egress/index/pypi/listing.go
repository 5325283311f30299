package pypi

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"time"

	"proctor/sandbox/egress/index"
)

// Types of a listing (PEP 691).
const (
	typeJSON = "application/vnd.pypi.simple.v1+json"
	typeHTML = "application/vnd.pypi.simple.v1+html"
)

// listing is a project of the upstream.
type listing struct {
	Name  string
	Files []file
}

// file is one of a project's files. Fields that programs inside read are kept as the upstream wrote them.
type file struct {
	Filename       string
	URL            *url.URL
	Hashes         map[string]string
	RequiresPython *string
	Yanked         json.RawMessage // false, true or a reason
	Metadata       json.RawMessage // true or hashes, where the upstream serves the file's metadata apart
	Size           *int64
	Uploaded       time.Time
}

// rawFile is a file as PEP 691, 700 and 714 write it.
type rawFile struct {
	Filename       string            `json:"filename"`
	URL            string            `json:"url"`
	Hashes         map[string]string `json:"hashes"`
	RequiresPython *string           `json:"requires-python,omitempty"`
	Yanked         json.RawMessage   `json:"yanked,omitempty"`
	CoreMetadata   json.RawMessage   `json:"core-metadata,omitempty"`
	DistInfo       json.RawMessage   `json:"dist-info-metadata,omitempty"`
	Size           *int64            `json:"size,omitempty"`
	UploadTime     string            `json:"upload-time,omitempty"`
}

type rawListing struct {
	Meta struct {
		Version string `json:"api-version"`
	} `json:"meta"`
	Name  string    `json:"name"`
	Files []rawFile `json:"files"`
}

// parseListing reads an upstream's JSON, which lay at base.
func parseListing(body []byte, base *url.URL) (*listing, error) {
	var raw rawListing
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("its listing is not JSON as PEP 691 has it: %w", err)
	}
	if !strings.HasPrefix(raw.Meta.Version, "1.") {
		return nil, fmt.Errorf("its listing has version %q, not 1", raw.Meta.Version)
	}
	l := &listing{Name: raw.Name}
	for _, f := range raw.Files {
		address, err := base.Parse(f.URL)
		if err != nil || strings.ContainsAny(f.Filename, "/\\") || f.Filename == "" || address.Scheme != "http" && address.Scheme != "https" {
			continue
		}
		uploaded, err := time.Parse(time.RFC3339Nano, f.UploadTime)
		if err != nil {
			uploaded = time.Time{}
		}
		metadata := f.CoreMetadata
		if len(metadata) == 0 {
			metadata = f.DistInfo
		}
		l.Files = append(l.Files, file{Filename: f.Filename, URL: address, Hashes: f.Hashes, RequiresPython: f.RequiresPython,
			Yanked: f.Yanked, Metadata: metadata, Size: f.Size, Uploaded: uploaded})
	}
	return l, nil
}

// under gives what of a listing exists under a rule.
func (l *listing) under(project string, rule index.Rule) *listing {
	kept := &listing{Name: l.Name}
	for _, f := range l.Files {
		if has(rule, project, f) {
			kept.Files = append(kept.Files, f)
		}
	}
	return kept
}

// find gives a file by its name.
func (l *listing) find(filename string) (file, bool) {
	for _, f := range l.Files {
		if f.Filename == filename {
			return f, true
		}
	}
	return file{}, false
}

// dated reports whether any file tells its time.
func (l *listing) dated() bool {
	for _, f := range l.Files {
		if !f.Uploaded.IsZero() {
			return true
		}
	}
	return len(l.Files) == 0
}

// address is where a file lies on a Mirror.
func address(project, filename string) string {
	return filesPath + url.PathEscape(project) + "/" + url.PathEscape(filename)
}

// json writes a listing as PEP 691 has it, with addresses of the Mirror.
func (l *listing) json(project string) ([]byte, error) {
	raw := rawListing{Name: project, Files: []rawFile{}}
	raw.Meta.Version = "1.0"
	for _, f := range l.Files {
		hashes := f.Hashes
		if hashes == nil {
			hashes = map[string]string{}
		}
		raw.Files = append(raw.Files, rawFile{Filename: f.Filename, URL: address(project, f.Filename), Hashes: hashes,
			RequiresPython: f.RequiresPython, Yanked: f.Yanked, CoreMetadata: f.Metadata, DistInfo: f.Metadata, Size: f.Size,
			UploadTime: stamp(f.Uploaded)})
	}
	return json.Marshal(raw)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// html writes a listing as PEP 503 has it.
func (l *listing) html(project string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html>\n  <head>\n    <meta name=\"pypi:repository-version\" content=\"1.0\">\n    <title>Links for %s</title>\n  </head>\n  <body>\n    <h1>Links for %[1]s</h1>\n",
		html.EscapeString(project))
	for _, f := range l.Files {
		fmt.Fprintf(&b, "    <a href=\"%s\"%s>%s</a><br />\n", html.EscapeString(address(project, f.Filename)+fragment(f.Hashes)), f.attributes(), html.EscapeString(f.Filename))
	}
	b.WriteString("  </body>\n</html>\n")
	return []byte(b.String())
}

// fragment names a hash in an address.
func fragment(hashes map[string]string) string {
	if sum, ok := hashes["sha256"]; ok {
		return "#sha256=" + sum
	}
	return ""
}

// attributes are those of a file's link.
func (f file) attributes() string {
	var b strings.Builder
	if f.RequiresPython != nil && *f.RequiresPython != "" {
		fmt.Fprintf(&b, " data-requires-python=\"%s\"", html.EscapeString(*f.RequiresPython))
	}
	var reason string
	switch y := string(f.Yanked); {
	case y == "true":
		b.WriteString(` data-yanked=""`)
	case json.Unmarshal(f.Yanked, &reason) == nil:
		fmt.Fprintf(&b, " data-yanked=\"%s\"", html.EscapeString(reason))
	}
	var sums map[string]string
	switch {
	case string(f.Metadata) == "true":
		b.WriteString(` data-core-metadata="true"`)
	case json.Unmarshal(f.Metadata, &sums) == nil && sums["sha256"] != "":
		fmt.Fprintf(&b, " data-core-metadata=\"sha256=%s\"", html.EscapeString(sums["sha256"]))
	}
	return b.String()
}
