package npm

import (
	"bufio"
	"encoding/json"
	"io"
	"time"
)

// typeShort is the type of the abbreviated document; its name is the one that installers ask for.
const typeShort = "application/vnd.npm.install-v1+json"

// described are the fields of a whole document that describe its latest version.
var described = []string{"description", "homepage", "keywords", "repository", "author", "bugs", "license", "maintainers", "contributors"}

// writeFull writes the whole document. What describes the package is taken from the version that is the
// latest here; the readme, which manifests do not have, and the count of changes (_rev) are left out.
func (p *packument) writeFull(w io.Writer, name string) error {
	_, last := p.span()
	times := map[string]string{"created": stamp(p.Created), "modified": stamp(last)}
	for _, v := range p.Versions {
		times[v.Number] = stamp(v.Published)
	}
	head := map[string]any{"_id": name, "name": name, "dist-tags": p.Tags, "time": times}
	var newest fields
	if v, ok := p.find(p.Tags[latest]); ok && json.Unmarshal(v.whole, &newest) == nil {
		for _, field := range described {
			if value, ok := newest[field]; ok {
				head[field] = value
			}
		}
	}
	return p.write(w, head, version.full)
}

// writeShort writes the abbreviated document.
func (p *packument) writeShort(w io.Writer, name string) error {
	_, last := p.span()
	return p.write(w, map[string]any{"name": name, "dist-tags": p.Tags, "modified": stamp(last)}, version.short)
}

// write writes a document one version after another: whole ones reach tens of MiB, and many may be asked for
// at once. Preconditions: there is a version.
func (p *packument) write(w io.Writer, head map[string]any, manifest func(version) json.RawMessage) error {
	out := bufio.NewWriter(w)
	start := encode(head)
	_, _ = out.Write(start[:len(start)-1]) // errors stay with a bufio.Writer
	between := `,"versions":{`
	for _, v := range p.Versions {
		_, _ = out.WriteString(between)
		_, _ = out.Write(encode(v.Number))
		_ = out.WriteByte(':')
		_, _ = out.Write(manifest(v))
		between = ","
	}
	_, _ = out.WriteString("}}")
	return out.Flush()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
