package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"proctor/internal/rollouts"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/export"

	"github.com/klauspost/compress/zstd"

	"github.com/go-chi/chi/v5"
)

// Exports is what exporting needs of *rollouts.Manager.
type Exports interface {
	Trajectory(ctx context.Context, id string) (*rollouts.Trajectory, error)
	// ExportRollout gives a rollout as package export takes it, for the form given.
	ExportRollout(ctx context.Context, id, form string) (*export.Rollout, error)
}

// trajectory gives the record of a rollout, or with ?format= and ?blocked= an export of it, one
// document a line.
func (s *Server) trajectory(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query().Get("format")
	blocked, err := trajectory.ParseBlockPolicy(r.URL.Query().Get("blocked"))
	if err != nil {
		return fieldProblem("blocked", "Query field "+err.Error()+".")
	}
	id := chi.URLParam(r, "id")
	if form == "" || form == "proctor" {
		t, err := s.rollouts.Trajectory(r.Context(), id)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, t)
	}
	if !known(form) {
		return fieldProblem("format", fmt.Sprintf("Query field format: %.32q is not served; use one of %s, or leave it out for proctor.trajectory/1.", form, strings.Join(export.Forms(), ", ")))
	}
	rollout, err := s.rollouts.ExportRollout(r.Context(), id, form)
	if err != nil {
		return err
	}
	return stream(w, r, form, rollout, blocked)
}

func known(form string) bool {
	for _, f := range export.Forms() {
		if f == form {
			return true
		}
	}
	return false
}

// stream writes the documents as they are made. What cannot be exported is told before the first one;
// a fault after it cuts the answer off, so that nobody takes half of it for the whole.
func stream(w http.ResponseWriter, r *http.Request, form string, rollout *export.Rollout, blocked trajectory.BlockPolicy) error {
	var out io.Writer = w
	began := false
	closeAll := func() error { return nil }
	begin := func() error {
		began = true
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "zstd") {
			w.Header().Set("Content-Encoding", "zstd")
			z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
			if err != nil {
				return err
			}
			out, closeAll = z, z.Close
		}
		buf := bufio.NewWriterSize(out, 64<<10)
		inner := closeAll
		out, closeAll = buf, func() error { return errors.Join(buf.Flush(), inner()) }
		return nil
	}
	err := export.Write(form, rollout, blocked, func(d export.Document) error {
		if !began {
			if err := begin(); err != nil {
				return err
			}
		}
		if _, err := out.Write(d.Body); err != nil {
			return err
		}
		_, err := out.Write([]byte{'\n'})
		return err
	})
	switch {
	case err == nil:
		return closeAll()
	case began:
		panic(http.ErrAbortHandler)
	case errors.Is(err, export.ErrNoTokens):
		return problem("no_tokens", sentence(err))
	case errors.Is(err, export.ErrNoPatch):
		return problem("no_patch", sentence(err))
	case errors.Is(err, export.ErrRejected):
		return problem("rollout_rejected", sentence(err))
	}
	return err
}

func sentence(err error) string { return strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + "." }
