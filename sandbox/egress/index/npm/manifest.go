package npm

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// shortFields are those of a manifest in the abbreviated document, as the registry's documentation lists
// them (npm/registry, docs/responses/package-metadata.md), but for two that are told anew: deprecated and
// hasInstallScript.
var shortFields = []string{"name", "version", "dependencies", "optionalDependencies", "devDependencies",
	"bundleDependencies", "bundledDependencies", "peerDependencies", "peerDependenciesMeta", "bin", "directories", "dist", "engines",
	"_hasShrinkwrap", "cpu", "os", "libc", "funding", "acceptDependencies"}

// installScripts are those that run where a package is installed.
var installScripts = []string{"preinstall", "install", "postinstall"}

// deprecation stands for the words of any: they are written at any time later, and often name a version.
const deprecation = `"deprecated":"this version is deprecated",`

// fields is a JSON object.
type fields = map[string]json.RawMessage

// tarballAt is where a version's tarball lies on a Mirror: as on the public registry.
func tarballAt(origin, name, number string) string {
	escaped := strings.Replace(url.PathEscape(name), "%2F", "/", 1)
	return origin + "/" + escaped + "/-/" + url.PathEscape(path.Base(name)+"-"+number) + tarballEnd
}

const tarballEnd = ".tgz"

// read takes a version's manifest, which is to name a tarball at served; base is where the upstream's
// document lay. It reports whether there is anything to install.
func (v *version) read(manifest json.RawMessage, served string, base *url.URL) bool {
	var all, dist fields
	if json.Unmarshal(manifest, &all) != nil || json.Unmarshal(all["dist"], &dist) != nil || dist == nil {
		return false
	}
	address := textOf(dist["tarball"])
	tarball, err := base.Parse(address)
	if err != nil || address == "" || tarball.Host == "" || tarball.Scheme != "http" && tarball.Scheme != "https" {
		return false
	}
	v.Tarball = tarball
	delete(dist, "attestations") // an address elsewhere
	dist["tarball"] = encode(served)
	all["dist"] = encode(dist)
	v.Deprecated = textOf(all["deprecated"]) != "" || string(all["deprecated"]) == "true"
	delete(all, "deprecated")
	v.whole, v.part = encode(all), encode(shorten(all))
	return v.whole != nil && v.part != nil
}

// full gives the manifest.
func (v version) full() json.RawMessage { return v.marked(v.whole) }

// short gives the manifest of the abbreviated document.
func (v version) short() json.RawMessage { return v.marked(v.part) }

// marked says of a manifest that it is deprecated, where it is.
func (v version) marked(manifest json.RawMessage) json.RawMessage {
	if !v.Deprecated {
		return manifest
	}
	return slices.Concat(json.RawMessage("{"+deprecation), manifest[1:])
}

// shorten gives what of a manifest the abbreviated document has.
func shorten(all fields) fields {
	short := fields{}
	for _, name := range shortFields {
		if value, ok := all[name]; ok {
			short[name] = value
		}
	}
	var scripts fields
	if json.Unmarshal(all["scripts"], &scripts) == nil {
		for _, name := range installScripts {
			if textOf(scripts[name]) != "" {
				short["hasInstallScript"] = json.RawMessage("true")
			}
		}
	}
	return short
}

// encode writes strings, and JSON that was read; nil for what cannot be written.
func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return text
}
