package npm

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"proctor/sandbox/egress/index"
)

// Origin is where programs inside find a Mirror, as its documents say. Where a door leads there is for the
// relay's package to see to.
const Origin = "http://127.0.0.13"

// Bounds of documents, in bytes.
const (
	maxListing = 128 << 20 // next, with 2600 versions in 2026, has 20 MiB
	cacheBytes = 128 << 20 // as parsed: manifests in both forms
)

// Mirror is a registry that sandboxes are shown parts of. Safe for concurrent use.
type Mirror struct{ source *index.Source[packument] }

// New makes a Mirror. The upstream's address is as npm's registry setting takes it; a user in it without a
// password is taken for a token.
func New(o index.Options) (*Mirror, error) { return newMirror(o, Origin) }

// newMirror makes a Mirror whose documents name tarballs at origin.
func newMirror(o index.Options, origin string) (*Mirror, error) {
	source, err := index.NewSource(index.Kind[packument]{
		Name: "npm index", Package: "package", Like: "npm's registry setting", Accept: "application/json",
		MaxListing: maxListing, CacheBytes: cacheBytes, Token: true, Address: addressOf, Dated: (*packument).dated,
		Read: func(name string, a index.Answer) (*packument, int, error) {
			return parsePackument(a.Body, name, origin, a.From)
		},
	}, o)
	if err != nil {
		return nil, err
	}
	return &Mirror{source}, nil
}

// addressOf gives where a package's document lies: a scoped name is one step of the path.
func addressOf(base url.URL, name string) *url.URL {
	base.RawPath = base.EscapedPath() + strings.Replace(name, "/", "%2f", 1)
	base.Path += name
	return &base
}

// Upstream is the registry's address without its user.
func (m *Mirror) Upstream() string { return m.source.Upstream() }

// Probe asks the upstream for a package, to tell in advance whether it will do. Errors: index.ErrUndated.
func (m *Mirror) Probe(ctx context.Context, name string) error {
	return m.source.Probe(ctx, name)
}

// Handler serves the registry under a rule.
func (m *Mirror) Handler(rule index.Rule) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, ok := route(r.URL.EscapedPath())
		switch {
		case !ok:
			notFound(w)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		default:
			m.serve(w, r, asked, rule)
		}
	})
}

// serve answers what is asked of a package, as far as it exists.
func (m *Mirror) serve(w http.ResponseWriter, r *http.Request, asked wanted, rule index.Rule) {
	p, err := m.source.Listing(r.Context(), asked.name)
	if err != nil {
		m.source.Refuse(w, asked.name, err)
		return
	}
	if p != nil && !p.dated() {
		m.source.Undated(asked.name)
	}
	if p != nil {
		p = p.under(asked.name, rule)
	}
	switch {
	case p == nil: // a package that came later does not exist either
		notFound(w)
	case asked.tarball != "":
		if v, ok := p.find(asked.tarball); ok {
			m.source.Pass(w, r, v.Tarball)
			return
		}
		notFound(w)
	case asked.selector != "":
		if v, ok := p.pick(asked.selector); ok {
			answer(w, http.StatusOK, "application/json", v.full())
			return
		}
		notFound(w)
	default:
		serveDocument(w, r, asked.name, p)
	}
}

// serveDocument serves a package's document, whole or abbreviated as the client likes.
func serveDocument(w http.ResponseWriter, r *http.Request, name string, p *packument) {
	write, kind := p.writeFull, "application/json"
	if strings.Contains(r.Header.Get("Accept"), typeShort) {
		write, kind = p.writeShort, typeShort
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept")
	if err := write(w, name); err != nil {
		panic(http.ErrAbortHandler) // nobody reads any more
	}
}

// notFound answers for all that does not exist, in the words of registries.
func notFound(w http.ResponseWriter) {
	answer(w, http.StatusNotFound, "application/json", []byte(`{"error":"Not found"}`))
}

func answer(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
