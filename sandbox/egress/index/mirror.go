package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
)

// Paths of a Mirror. SimplePath is what pip's index URL ends in.
const (
	SimplePath = "/simple/"
	filesPath  = "/files/"
)

const (
	maxListing  = 64 << 20 // bytes; the largest projects of the public index have some 30 MiB
	cacheBytes  = 64 << 20
	cacheTime   = 10 * time.Minute
	listingWait = 60 * time.Second
)

// Options make a Mirror.
type Options struct {
	// Upstream is the index's address, the one that pip would be given; user and password in it are sent
	// to the upstream, and never inside.
	Upstream string
	// Client asks the upstream; nil: http.DefaultTransport, which knows the host's proxy and certificates.
	Client *http.Client
	Log    *slog.Logger
}

// Mirror is an index that sandboxes are shown parts of. Safe for concurrent use.
type Mirror struct {
	upstream *url.URL
	client   *http.Client
	log      *slog.Logger
	asking   singleflight.Group
	cache    *cache
}

// New makes a Mirror.
func New(o Options) (*Mirror, error) {
	u, err := url.Parse(o.Upstream)
	if err != nil {
		return nil, errors.New("it is no address") // err would show a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no http or https address, such as pip's --index-url takes", u.Redacted())
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	m := &Mirror{upstream: u, client: o.Client, log: o.Log, cache: newCache(cacheBytes, cacheTime)}
	if m.client == nil {
		m.client = &http.Client{}
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	return m, nil
}

// Upstream is the index's address without its password.
func (m *Mirror) Upstream() string { return m.upstream.Redacted() }

// ErrUndated says that an index tells no times of upload, so that nothing of it can be shown.
var ErrUndated = errors.New("the index tells no upload times (PEP 700); give one that does, such as a mirror of the public index's JSON API")

// Probe asks the upstream for a project, to tell in advance whether it will do.
func (m *Mirror) Probe(ctx context.Context, project string) error {
	l, err := m.listing(ctx, Normalize(project))
	switch {
	case err != nil:
		return err
	case l == nil:
		return fmt.Errorf("package index %s: it has no project %s", m.Upstream(), project)
	case !l.dated():
		return fmt.Errorf("package index %s: %w", m.Upstream(), ErrUndated)
	}
	return nil
}

// Handler serves the index under a rule.
func (m *Mirror) Handler(rule Rule) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+SimplePath+"{project}/{$}", func(w http.ResponseWriter, r *http.Request) { m.serveListing(w, r, rule) })
	mux.HandleFunc("GET "+filesPath+"{project}/{file}", func(w http.ResponseWriter, r *http.Request) { m.serveFile(w, r, rule) })
	return mux
}

// serveListing serves a project's page.
func (m *Mirror) serveListing(w http.ResponseWriter, r *http.Request, rule Rule) {
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
func (m *Mirror) shown(w http.ResponseWriter, r *http.Request, project string, rule Rule) *listing {
	l, err := m.listing(r.Context(), project)
	if err != nil {
		m.log.Warn("a package index does not answer", "project", project, "err", err)
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return nil
	}
	if l == nil {
		http.NotFound(w, r)
		return nil
	}
	if !l.dated() {
		m.log.Warn("a project is not shown", "index", m.Upstream(), "project", project, "err", ErrUndated)
	}
	kept := l.under(project, rule)
	if len(kept.Files) == 0 {
		http.NotFound(w, r) // a project that came later does not exist either
		return nil
	}
	return kept
}

// serveFile serves a file, or its metadata, that the filtered listing has.
func (m *Mirror) serveFile(w http.ResponseWriter, r *http.Request, rule Rule) {
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
	m.pass(w, r, address)
}

// passed are the headers of a file that go inside.
var passed = []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Last-Modified", "Etag"}

// pass streams a file of the upstream.
func (m *Mirror) pass(w http.ResponseWriter, r *http.Request, address *url.URL) {
	ask, err := http.NewRequestWithContext(r.Context(), r.Method, m.withUser(address), nil)
	if err != nil {
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return
	}
	ask.Header.Set("Accept-Encoding", "identity") // byte for byte as its hash says
	for _, name := range []string{"Range", "If-Range"} {
		if v := r.Header.Get(name); v != "" {
			ask.Header.Set(name, v)
		}
	}
	answer, err := m.client.Do(ask)
	if err != nil {
		m.log.Warn("a file of the package index cannot be had", "file", address.Redacted(), "err", err)
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for _, name := range passed {
		if v := answer.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// withUser gives an address with the upstream's user, where it lies on the same host.
func (m *Mirror) withUser(address *url.URL) string {
	if m.upstream.User == nil || address.User != nil || address.Host != m.upstream.Host || address.Scheme != m.upstream.Scheme {
		return address.String()
	}
	with := *address
	with.User = m.upstream.User
	return with.String()
}

// listing gives a project's page, from the cache or the upstream; nil where there is no such project.
func (m *Mirror) listing(ctx context.Context, project string) (*listing, error) {
	if l, ok := m.cache.get(project); ok {
		return l, nil
	}
	got := m.asking.DoChan(project, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listingWait)
		defer cancel()
		l, size, err := m.fetch(ctx, project)
		if err == nil {
			m.cache.put(project, l, size)
		}
		return l, err
	})
	select {
	case r := <-got:
		l, _ := r.Val.(*listing)
		return l, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch asks the upstream for a project's page.
func (m *Mirror) fetch(ctx context.Context, project string) (*listing, int, error) {
	address := *m.upstream
	address.Path += project + "/"
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, 0, err
	}
	ask.Header.Set("Accept", typeJSON)
	answer, err := m.client.Do(ask)
	if err != nil {
		return nil, 0, fmt.Errorf("package index %s: %w", m.Upstream(), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, len(project), nil
	}
	if answer.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("package index %s: project %s: %s", m.Upstream(), project, answer.Status)
	}
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, typeJSON) {
		return nil, 0, fmt.Errorf("package index %s: it answers in %q: %w", m.Upstream(), kind, ErrUndated)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxListing+1))
	if err != nil || len(body) > maxListing {
		return nil, 0, errors.Join(fmt.Errorf("package index %s: the listing of %s is cut off, or longer than %d bytes", m.Upstream(), project, maxListing), err)
	}
	l, err := parseListing(body, answer.Request.URL)
	if err != nil {
		return nil, 0, fmt.Errorf("package index %s: %s: %w", m.Upstream(), project, err)
	}
	return l, len(body), nil
}
