package images

import (
	"os"
	"path/filepath"
	"strings"
)

// Schemes in front of a ref that name a file or folder.
const (
	schemeLayout  = "oci:"
	schemeArchive = "oci-archive:"
	schemeDocker  = "docker-archive:"
)

// file is a ref that names a file or folder of the host.
type file struct {
	path string
	tag  string // which of its images; "" where there is one only
}

// fileRef reads a ref that names a file or folder: one with a scheme, or a plain path, which starts with "/", "./" or
// "../". After a scheme a tag may follow the path and a colon.
func fileRef(ref string) (file, bool) {
	for _, scheme := range []string{schemeLayout, schemeArchive, schemeDocker} {
		rest, found := strings.CutPrefix(ref, scheme)
		if !found {
			continue
		}
		if _, err := os.Stat(rest); err == nil {
			return file{path: rest}, true
		}
		// The path may hold colons, and so may the tag (a name with one): the shortest path that is there.
		for i, r := range rest {
			if r != ':' || i == 0 {
				continue
			}
			if _, err := os.Stat(rest[:i]); err == nil {
				return file{rest[:i], rest[i+1:]}, true
			}
		}
		return file{path: rest}, true
	}
	if filepath.IsAbs(ref) || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") {
		return file{path: ref}, true
	}
	return file{}, false
}

// ours are names of images that are only ever built on the machine: no registry is asked for them.
const ours = "proctor/"

// wellFormed reports whether ref could be a name or an id at all.
func wellFormed(ref string) bool {
	return ref != "" && !strings.ContainsAny(ref, " \t\r\n\x00")
}
