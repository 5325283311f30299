package pypi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"proctor/sandbox/egress/index"
)

// Paths of a Mirror. SimplePath is what pip's index URL ends in.
const (
	SimplePath = "/simple/"
	filesPath  = "/files/"
)

// kind says how an index of Python packages is asked.
var kind = index.Kind[listing]{
	Name: "package index", Package: "project", Like: "pip's --index-url", Accept: typeJSON,
	MaxListing: 64 << 20, // the largest projects of the public index have some 30 MiB
	CacheBytes: 64 << 20,
	Address: func(base url.URL, project string) *url.URL {
		base.Path += project + "/"
		return &base
	},
	Read:  read,
	Dated: (*listing).dated,
}

// read reads a project's page.
func read(_ string, a index.Answer) (*listing, int, error) {
	if !strings.HasPrefix(a.Type, typeJSON) {
		return nil, 0, fmt.Errorf("it answers in %q: %w", a.Type, index.ErrUndated)
	}
	l, err := parseListing(a.Body, a.From)
	return l, len(a.Body), err
}

// Mirror is an index that sandboxes are shown parts of. Safe for concurrent use.
type Mirror struct{ source *index.Source[listing] }

// New makes a Mirror. The upstream's address is as pip's --index-url takes it.
func New(o index.Options) (*Mirror, error) {
	source, err := index.NewSource(kind, o)
	if err != nil {
		return nil, err
	}
	return &Mirror{source}, nil
}

// Upstream is the index's address without its user.
func (m *Mirror) Upstream() string { return m.source.Upstream() }

// Probe asks the upstream for a project, to tell in advance whether it will do. Errors: index.ErrUndated.
func (m *Mirror) Probe(ctx context.Context, project string) error {
	return m.source.Probe(ctx, Normalize(project))
}

// Handler serves the index under a rule.
func (m *Mirror) Handler(rule index.Rule) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+SimplePath+"{project}/{$}", func(w http.ResponseWriter, r *http.Request) { m.serveListing(w, r, rule) })
	mux.HandleFunc("GET "+filesPath+"{project}/{file}", func(w http.ResponseWriter, r *http.Request) { m.serveFile(w, r, rule) })
	return mux
}

// serveListing serves a project's page.
func (m *Mirror) serveListing(w http.ResponseWriter, r *http.Request, rule index.Rule) {
	project := Normalize(r.PathValue("project"))
	l := m.shown(w, r, project, rule)
	if l == nil {
		return
	}
	body, kind := l.html(project), "text/html; charset=utf-8"
	if accept := r.Header.Get("Accept"); strings.Contains(accept, typeJSON) {
		var err error
		if body, err = l.json(project); err != nil {
			http.Error(w, "Bad Gateway", http.StatusBadGateway)
			return
		}
		kind = typeJSON
	} else if strings.Contains(accept, typeHTML) {
		kind = typeHTML
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept")
	_, _ = w.Write(body)
}

// shown gives what of a project exists under a rule; nil where it has answered itself.
func (m *Mirror) shown(w http.ResponseWriter, r *http.Request, project string, rule index.Rule) *listing {
	l, err := m.source.Listing(r.Context(), project)
	if err != nil {
		m.source.Refuse(w, project, err)
		return nil
	}
	if l == nil {
		http.NotFound(w, r)
		return nil
	}
	if !l.dated() {
		m.source.Undated(project)
	}
	kept := l.under(project, rule)
	if len(kept.Files) == 0 {
		http.NotFound(w, r) // a project that came later does not exist either
		return nil
	}
	return kept
}

// serveFile serves a file, or its metadata, that the filtered listing has.
func (m *Mirror) serveFile(w http.ResponseWriter, r *http.Request, rule index.Rule) {
	project := Normalize(r.PathValue("project"))
	l := m.shown(w, r, project, rule)
	if l == nil {
		return
	}
	name := r.PathValue("file")
	f, ok := l.find(name)
	address := f.URL
	if stem, is := strings.CutSuffix(name, ".metadata"); !ok && is {
		if f, ok = l.find(stem); ok {
			if ok = len(f.Metadata) > 0 && string(f.Metadata) != "false" && string(f.Metadata) != "null"; ok {
				beside := *f.URL
				beside.Path, beside.RawPath, beside.Fragment = beside.Path+".metadata", "", ""
				address = &beside
			}
		}
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	m.source.Pass(w, r, address)
}
