package npm

import (
	"encoding/json"
	"net/url"
	"path"
	"strings"
)

// shortFields are those of a manifest in the abbreviated document, as the registry's documentation lists
// them (npm/registry, docs/responses/package-metadata.md), but for hasInstallScript, which is told anew.
var shortFields = []string{"name", "version", "deprecated", "dependencies", "optionalDependencies", "devDependencies",
	"bundleDependencies", "bundledDependencies", "peerDependencies", "peerDependenciesMeta", "bin", "directories", "dist", "engines",
	"_hasShrinkwrap", "cpu", "os", "libc", "funding", "acceptDependencies"}

// installScripts are those that run where a package is installed.
var installScripts = []string{"preinstall", "install", "postinstall"}

// deprecation stands for the words of any: they are written at any time later, and often name a version.
const deprecation = "this version is deprecated"

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
	if d, ok := all["deprecated"]; ok {
		delete(all, "deprecated")
		if text := textOf(d); text != "" || string(d) == "true" {
			all["deprecated"] = encode(deprecation)
		}
	}
	v.Full, v.Short = encode(all), encode(shorten(all))
	return v.Full != nil && v.Short != nil
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
