package npm

import (
	"encoding/json"
	"time"
)

// typeShort is the type of the abbreviated document; its name is the one that installers ask for.
const typeShort = "application/vnd.npm.install-v1+json"

// described are the fields of a whole document that describe its latest version.
var described = []string{"description", "homepage", "keywords", "repository", "author", "bugs", "license", "maintainers", "contributors"}

// full writes the whole document. What describes the package is taken from the version that is the latest
// here; the readme, which manifests do not have, and the count of changes (_rev) are left out.
func (p *packument) full(name string) ([]byte, error) {
	_, last := p.span()
	times := map[string]string{"created": stamp(p.Created), "modified": stamp(last)}
	versions := fields{}
	for _, v := range p.Versions {
		versions[v.Number], times[v.Number] = v.full(), stamp(v.Published)
	}
	document := map[string]any{"_id": name, "name": name, "dist-tags": p.Tags, "versions": versions, "time": times}
	var newest fields
	if v, ok := p.find(p.Tags[latest]); ok && json.Unmarshal(v.whole, &newest) == nil {
		for _, field := range described {
			if value, ok := newest[field]; ok {
				document[field] = value
			}
		}
	}
	return json.Marshal(document)
}

// short writes the abbreviated document.
func (p *packument) short(name string) ([]byte, error) {
	_, last := p.span()
	versions := fields{}
	for _, v := range p.Versions {
		versions[v.Number] = v.short()
	}
	return json.Marshal(map[string]any{"name": name, "dist-tags": p.Tags, "versions": versions, "modified": stamp(last)})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
