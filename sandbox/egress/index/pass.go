package index

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// fileSilence is how long an upstream may send nothing of a file before it counts as broken.
const fileSilence = 2 * time.Minute

// passed are the headers of a file that go inside.
var passed = []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Last-Modified", "Etag"}

// Refuse answers that the upstream does not do as it should; the log has the reason, and inside there is none.
func (s *Source[L]) Refuse(w http.ResponseWriter, name string, err error) {
	s.log.Warn("a "+s.kind.Name+" does not answer", "package", name, "err", err)
	http.Error(w, "Bad Gateway", http.StatusBadGateway)
}

// Undated tells the log of a package that is not shown for want of times.
func (s *Source[L]) Undated(name string) {
	s.log.Warn("a package is not shown", "index", s.Upstream(), "package", name, "err", ErrUndated)
}

// Pass streams a file of the upstream. Where it breaks off, so does the answer.
func (s *Source[L]) Pass(w http.ResponseWriter, r *http.Request, address *url.URL) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	silence := time.AfterFunc(fileSilence, cancel)
	defer silence.Stop()
	answer, err := s.askFile(ctx, r, address)
	if err != nil {
		s.Refuse(w, address.Redacted(), err)
		return
	}
	defer answer.Body.Close()
	for _, name := range passed {
		if v := answer.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(w, heard{answer.Body, silence}); err != nil {
		panic(http.ErrAbortHandler) // a short file must not look like a whole one
	}
}

// askFile asks for a file as r does.
func (s *Source[L]) askFile(ctx context.Context, r *http.Request, address *url.URL) (*http.Response, error) {
	ask, err := http.NewRequestWithContext(ctx, r.Method, address.String(), nil)
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Accept-Encoding", "identity") // byte for byte as its hash says
	for _, name := range []string{"Range", "If-Range"} {
		if v := r.Header.Get(name); v != "" {
			ask.Header.Set(name, v)
		}
	}
	s.introduce(ask)
	return s.client.Do(ask)
}

// heard puts a timer off with each read.
type heard struct {
	io.Reader
	silence *time.Timer
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.silence.Reset(fileSilence)
	return n, err
}
