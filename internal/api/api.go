// Package api is the HTTP surface: the trainer plane and the agent plane, in the shapes that
// outside clients rely on, errors as problem+json.
//
// Two planes. The trainer plane (API keys with roles) creates rollouts and reads verdicts,
// trajectories and grades. The agent plane (a token of one rollout) runs calls. Whatever an agent
// token does not open is answered with one and the same refusal, so that nothing can be told from
// it; nothing about detection is readable with an agent token.
package api

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"runtime/debug"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"

	"github.com/go-chi/chi/v5"
)

// Rollouts is what the HTTP layer needs of *rollouts.Manager. A key is an Idempotency-Key, "" for
// none. Errors are *rollouts.Error, whose codes problem.go maps to statuses.
type Rollouts interface {
	Critics
	Groups
	Forks
	Places
	Exports

	Create(ctx context.Context, key string, req rollouts.CreateRequest) (rollouts.Created, error)
	Get(ctx context.Context, id string) (rollouts.View, error)
	List(ctx context.Context, f rollouts.Filter) (views []rollouts.View, next string, err error)
	Delete(ctx context.Context, id string) error
	Heartbeat(ctx context.Context, id string) error

	// Authenticate reports, in constant time, whether token opens the agent plane of rollout id.
	Authenticate(id, token string) bool
	// Call takes a call through the rollout's Gate. It goes on when ctx's caller hangs up.
	Call(ctx context.Context, id string, call monitor.Call) (monitor.Observation, error)
	Exec(ctx context.Context, id string, e sandbox.Exec) (sandbox.ExecResult, error)
	Submit(ctx context.Context, id string) error

	// Grade starts grading, or joins it; with wait it gives the grade, else nil while it runs.
	Grade(ctx context.Context, id string, wait bool) (*tasks.Grade, error)
	Patch(ctx context.Context, id string) ([]byte, error)
	Verdicts(ctx context.Context, id string) ([]rollouts.VerdictView, error)
	AddReview(ctx context.Context, id string, ordinal int, review rollouts.Review) error
	// Events gives what happened to a rollout after event number from, live until ctx ends or the
	// rollout does; then the channel is closed.
	Events(ctx context.Context, id string, from int64) (<-chan rollouts.Event, error)

	Tasks(ctx context.Context) []*tasks.Task
	Task(ctx context.Context, id string) (*tasks.Task, error)
	// Check explains what the Gate would make of a call on a task, without running anything.
	Check(ctx context.Context, taskID string, call monitor.Call) (rollouts.Explanation, error)
	// Ready is nil when rollouts can be made.
	Ready(ctx context.Context) error
}

// Options are what a Server is made from.
type Options struct {
	Rollouts Rollouts
	Keys     []Key
	// MoreKeys gives the name and role of a key by the hash of its secret, "" for none; nil: there are
	// only Keys.
	MoreKeys func(sum [sha256.Size]byte) (name, role string)
	Version  string
	Metrics  http.Handler // nil: no /metrics
	Models   Models       // nil: no model gateway
	Segments Segments     // nil: no uploads
	Packs    Packs        // nil: no listing and no reload
	Log      *slog.Logger
}

// Server answers HTTP requests. Safe for concurrent use.
type Server struct {
	rollouts  Rollouts
	keys      keyring
	moreKeys  func(sum [sha256.Size]byte) (name, role string)
	version   string
	metrics   http.Handler
	models    Models
	segments  Segments
	packs     Packs
	protocols protocols
	log       *slog.Logger
}

// New makes a Server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{rollouts: o.Rollouts, keys: newKeyring(o.Keys), moreKeys: o.MoreKeys, version: o.Version, metrics: o.Metrics, models: o.Models, segments: o.Segments, packs: o.Packs,
		protocols: newProtocols(o), log: o.Log}
}

// handler is a request handler that leaves its errors to be written as problems.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle writes a handler's error, and turns a panic into one.
func (s *Server) handle(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler { // on purpose: an answer that cannot be finished
					panic(v)
				}
				s.log.ErrorContext(r.Context(), "handler panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
				fail(w, r, s.log, problem("internal", "The server could not answer; its log says why."))
			}
		}()
		if err := next(w, r); err != nil {
			fail(w, r, s.log, err)
		}
	}
}

// router makes a router that answers whatever it does not know with the one refusal.
func (s *Server) router() chi.Router {
	r := chi.NewRouter()
	refuse := s.handle(func(http.ResponseWriter, *http.Request) error { return notFound() })
	r.NotFound(refuse)
	r.MethodNotAllowed(refuse)
	return r
}

// Handler gives the routes. openapi_test.go holds the served document against them.
func (s *Server) Handler() http.Handler {
	r := s.router()

	r.Get("/healthz", s.handle(s.health))
	r.Get("/readyz", s.handle(s.ready))
	r.Get("/openapi.json", s.trainer(RoleReviewer, s.openAPI))
	if s.metrics != nil {
		r.Get("/metrics", s.trainer(RoleReviewer, func(w http.ResponseWriter, r *http.Request) error {
			s.metrics.ServeHTTP(w, r)
			return nil
		}))
	}

	r.Post("/v1/rollouts", s.trainer(RoleTrainer, s.createRollout))
	r.Get("/v1/rollouts", s.trainer(RoleReviewer, s.listRollouts))
	r.Get("/v1/rollouts/{id}", s.trainer(RoleReviewer, s.getRollout))
	r.Delete("/v1/rollouts/{id}", s.trainer(RoleTrainer, s.deleteRollout))
	r.Post("/v1/rollouts/{id}/grade", s.trainer(RoleTrainer, s.grade))
	r.Post("/v1/rollouts/{id}/exec", s.trainer(RoleTrainer, s.exec))
	r.Post("/v1/rollouts/{id}/heartbeat", s.trainer(RoleTrainer, s.heartbeat))
	r.Get("/v1/rollouts/{id}/patch", s.trainer(RoleReviewer, s.patch))
	r.Get("/v1/rollouts/{id}/trajectory", s.trainer(RoleReviewer, s.trajectory))
	r.Get("/v1/rollouts/{id}/events", s.trainer(RoleReviewer, s.events))
	r.Get("/v1/rollouts/{id}/verdicts", s.trainer(RoleReviewer, s.verdicts))
	r.Post("/v1/rollouts/{id}/verdicts/{ordinal}/review", s.trainer(RoleReviewer, s.review))
	r.Get("/v1/tasks", s.trainer(RoleReviewer, s.listTasks))
	r.Get("/v1/tasks/{id}", s.trainer(RoleReviewer, s.getTask))
	r.Post("/v1/packs/check", s.trainer(RoleReviewer, s.check))

	s.criticRoutes(r)
	s.compatRoutes(r)
	s.groupRoutes(r)
	s.forkRoutes(r)
	s.capacityRoutes(r)
	s.gatewayRoutes(r)
	s.segmentRoutes(r)
	s.packRoutes(r)

	r.Get("/v1/rollouts/{id}/tools", s.agent(s.tools))
	r.Post("/v1/rollouts/{id}/calls", s.agent(s.call))
	r.Post("/v1/rollouts/{id}/submit", s.agent(s.submit))
	return r
}
