package npm

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// wanted is what a path asks for: a package's document, or one version's manifest, or a version's tarball.
type wanted struct {
	name     string
	selector string // a version or tag; "" where none is asked for
	tarball  string // a version; "" where none is asked for
}

// nameForm are the names that registries have given out, but for a few hundred old ones with odd signs. None
// begins with "-", under which registries have their other services, or with "." or "_".
var nameForm = regexp.MustCompile(`^(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`)

const maxName = 214 // characters, as npm allows

// route reads a path as it stands in a request, with its escapes: npm writes the "/" of a scoped name as %2f,
// others write it plainly.
func route(escaped string) (wanted, bool) {
	parts := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil {
			return wanted{}, false
		}
		parts[i] = plain
	}
	w := wanted{name: parts[0]}
	rest := parts[1:]
	if strings.HasPrefix(w.name, "@") && !strings.Contains(w.name, "/") && len(rest) > 0 {
		w.name, rest = w.name+"/"+rest[0], rest[1:]
	}
	if len(w.name) > maxName || !nameForm.MatchString(w.name) {
		return wanted{}, false
	}
	switch {
	case len(rest) == 0:
		return w, true
	case len(rest) == 1 && rest[0] != "" && rest[0] != "-":
		w.selector = rest[0]
		return w, true
	case len(rest) == 2 && rest[0] == "-":
		var ended, begun bool
		w.tarball, ended = strings.CutSuffix(rest[1], tarballEnd)
		w.tarball, begun = strings.CutPrefix(w.tarball, path.Base(w.name)+"-")
		return w, ended && begun && w.tarball != ""
	}
	return wanted{}, false
}
