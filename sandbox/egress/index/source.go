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

// Bounds of a Source.
const (
	cacheTime    = 10 * time.Minute
	listingWait  = 60 * time.Second
	maxAsked     = 8 // listings read at once: each may take MaxListing and its parsed form
	maxRedirects = 5
)

// ErrUndated says that an index tells no times of upload, so that nothing of it can be shown.
var ErrUndated = errors.New("it tells no times of upload, by which alone anything is shown")

// Options make a mirror.
type Options struct {
	// Upstream is the index's address, as its installer would be given it; user, password or token in it
	// are sent to the upstream, and never inside.
	Upstream string
	// Client asks the upstream; nil: http.DefaultTransport, which knows the host's proxy and certificates.
	Client *http.Client
	Log    *slog.Logger
}

// Kind says how indexes of one kind are asked. L is what their listings are read into.
type Kind[L any] struct {
	Name       string // of the kind, for errors and the log: "package index"
	Package    string // what it calls one of its packages: "project"
	Like       string // whose setting an address is like: "pip's --index-url"
	Accept     string // the type of a listing to ask for
	MaxListing int    // bytes of a listing that are read
	CacheBytes int    // bytes of listings that are kept; one of more than half of it is not
	Token      bool   // a user without a password is a token: it goes as Authorization: Bearer
	// Address gives where a package's listing lies; base ends in "/" and must not be changed.
	Address func(base url.URL, name string) *url.URL
	// Read reads a listing, and says how many bytes it takes from then on.
	Read func(name string, a Answer) (l *L, size int, err error)
	// Dated reports whether a listing tells times.
	Dated func(l *L) bool
}

// Answer is a listing as the upstream sent it.
type Answer struct {
	Type string // its Content-Type
	Body []byte
	From *url.URL // where it lay, after redirects
}

// Source is an upstream that listings and files are had from. Safe for concurrent use.
type Source[L any] struct {
	kind   Kind[L]
	base   url.URL // without its user
	user   *url.Userinfo
	client http.Client
	log    *slog.Logger
	asking singleflight.Group
	room   chan struct{} // maxAsked places
	cache  *cache[L]
}

// NewSource makes a Source. An error shows neither user nor password.
func NewSource[L any](kind Kind[L], o Options) (*Source[L], error) {
	u, err := url.Parse(o.Upstream)
	if err != nil {
		return nil, errors.New("it is no address") // err would show a password
	}
	user := u.User
	u.User = nil
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no http or https address, such as %s takes", u.String(), kind.Like)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	s := &Source[L]{kind: kind, base: *u, user: user, log: o.Log, room: make(chan struct{}, maxAsked), cache: newCache[L](kind.CacheBytes, cacheTime)}
	if o.Client != nil {
		s.client = *o.Client
	}
	s.client.CheckRedirect = s.redirect
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Upstream is the index's address without its user.
func (s *Source[L]) Upstream() string { return s.base.String() }

// Probe asks the upstream for a package, to tell in advance whether it will do. Errors: ErrUndated.
func (s *Source[L]) Probe(ctx context.Context, name string) error {
	l, err := s.Listing(ctx, name)
	switch {
	case err != nil:
		return err
	case l == nil:
		return fmt.Errorf("%s %s: it has no %s %s", s.kind.Name, s.Upstream(), s.kind.Package, name)
	case !s.kind.Dated(l):
		return fmt.Errorf("%s %s: %w", s.kind.Name, s.Upstream(), ErrUndated)
	}
	return nil
}

// Listing gives a package's listing, from the cache or the upstream; nil where there is no such package.
func (s *Source[L]) Listing(ctx context.Context, name string) (*L, error) {
	if l, ok := s.cache.get(name); ok {
		return l, nil
	}
	got := s.asking.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listingWait)
		defer cancel()
		l, size, err := s.fetch(ctx, name)
		if err == nil {
			s.cache.put(name, l, size)
		}
		return l, err
	})
	select {
	case r := <-got:
		l, _ := r.Val.(*L)
		return l, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch asks the upstream for a package's listing.
func (s *Source[L]) fetch(ctx context.Context, name string) (*L, int, error) {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.kind.Address(s.base, name).String(), nil)
	if err != nil {
		return nil, 0, err
	}
	ask.Header.Set("Accept", s.kind.Accept)
	s.introduce(ask)
	answer, err := s.client.Do(ask)
	if err != nil {
		return nil, 0, s.failed(name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, len(name), nil
	}
	if answer.StatusCode != http.StatusOK {
		return nil, 0, s.failed(name, errors.New(answer.Status))
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(s.kind.MaxListing)+1))
	if err != nil || len(body) > s.kind.MaxListing {
		return nil, 0, s.failed(name, errors.Join(fmt.Errorf("the listing is cut off, or longer than %d bytes", s.kind.MaxListing), err))
	}
	l, size, err := s.kind.Read(name, Answer{Type: answer.Header.Get("Content-Type"), Body: body, From: answer.Request.URL})
	if err != nil {
		return nil, 0, s.failed(name, err)
	}
	return l, size, nil
}

// failed says of which index and package an error is.
func (s *Source[L]) failed(name string, err error) error {
	return fmt.Errorf("%s %s: %s: %w", s.kind.Name, s.Upstream(), name, err)
}

// redirect follows a few redirects; the user goes along to the upstream's own host alone.
func (s *Source[L]) redirect(next *http.Request, before []*http.Request) error {
	if len(before) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	s.introduce(next)
	return nil
}

// introduce tells the upstream, and nobody else, who asks.
func (s *Source[L]) introduce(ask *http.Request) {
	ask.Header.Del("Authorization")
	if s.user == nil || ask.URL.User != nil || ask.URL.Host != s.base.Host || ask.URL.Scheme != s.base.Scheme {
		return
	}
	if password, ok := s.user.Password(); ok || !s.kind.Token {
		ask.SetBasicAuth(s.user.Username(), password)
		return
	}
	ask.Header.Set("Authorization", "Bearer "+s.user.Username())
}
