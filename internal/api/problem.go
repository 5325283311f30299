package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/sandbox"
)

// Problem is an error answer, RFC 9457. Code is stable; Detail says what and what to do.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
	Field  string `json:"field,omitempty"`
	Retry  bool   `json:"retry"`
}

// row is one line of the table from code to HTTP.
type row struct {
	status int
	title  string
	retry  bool
}

// table is the one place that gives each code its status, in four ranges: the caller's doing, the
// agent's tool, task and grader, infrastructure.
var table = map[string]row{
	// caller
	"not_found":            {http.StatusNotFound, "Not found", false},
	"bad_request":          {http.StatusBadRequest, "Malformed request", false},
	"invalid_field":        {http.StatusUnprocessableEntity, "A field does not fit", false},
	"body_too_large":       {http.StatusRequestEntityTooLarge, "Body over the limit", false},
	"idempotency_conflict": {http.StatusConflict, "Idempotency-Key used for another request", false},
	"records_conflict":     {http.StatusConflict, "The rollout has other records", false},
	"rollout_ended":        {http.StatusGone, "The rollout has ended", false},
	"at_capacity":          {http.StatusTooManyRequests, "No capacity for another rollout", true},
	"draining":             {http.StatusServiceUnavailable, "The server is draining", true},
	"unsupported":          {http.StatusUnprocessableEntity, "The engine cannot do this", false},
	// agent tool
	"invalid_call": {http.StatusUnprocessableEntity, "The call does not fit its tool", false},
	"sandbox_dead": {http.StatusGone, "The sandbox is gone", false},
	// task and grader
	"task_not_found":    {http.StatusNotFound, "No such task", false},
	"task_invalid":      {http.StatusUnprocessableEntity, "The task does not fit its schema", false},
	"task_not_gradable": {http.StatusUnprocessableEntity, "The task has no grader", false},
	"image_not_found":   {http.StatusUnprocessableEntity, "No such image", false},
	"image_bad":         {http.StatusUnprocessableEntity, "The image is broken or not for this machine", false},
	"image_no_shell":    {http.StatusUnprocessableEntity, "The image has no shell", false},
	"prepare_failed":    {http.StatusUnprocessableEntity, "The task's image could not be prepared", false},
	"no_tokens":         {http.StatusUnprocessableEntity, "There are no tokens to export", false},
	"no_patch":          {http.StatusUnprocessableEntity, "There is no patch to export", false},
	"rollout_rejected":  {http.StatusUnprocessableEntity, "The rollout is left out of the export", false},
	"grading_failed":    {http.StatusBadGateway, "Grading failed", true},
	"pack_invalid":      {http.StatusUnprocessableEntity, "The rule packs do not compile", false},
	// infrastructure
	"engine_unavailable": {http.StatusServiceUnavailable, "The sandbox engine does not answer", true},
	"store_full":         {http.StatusInsufficientStorage, "The data folder is full", true},
	"store_failed":       {http.StatusInternalServerError, "The store failed", true},
	"interrupted":        {http.StatusServiceUnavailable, "The call was interrupted", true},
	"outcome_unknown":    {http.StatusInternalServerError, "Whether the call ran is not known", false},
	"internal":           {http.StatusInternalServerError, "Internal error", true},
}

// notFound is the one body of every refusal on the agent plane.
func notFound() *Problem {
	return problem("not_found", "There is no such resource, or the key given does not open it.")
}

// problem makes a Problem of a code in the table.
func problem(code, detail string) *Problem {
	r, ok := table[code]
	if !ok {
		r = table["internal"]
	}
	return &Problem{Type: "urn:problem:" + code, Title: r.title, Status: r.status, Code: code, Detail: detail, Retry: r.retry}
}

// Error makes a Problem an error, for handlers to return.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// asProblem gives any error its Problem.
func asProblem(err error) *Problem {
	var p *Problem
	var bad *monitor.BadCall
	var refused *rollouts.Error
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &bad):
		q := problem("invalid_call", bad.Error())
		q.Field = bad.Field
		return q
	case errors.As(err, &refused):
		q := problem(refused.Code, refused.Error())
		if q.Code == "not_found" {
			return notFound()
		}
		q.Retry = q.Retry || refused.Retry
		return q
	case errors.As(err, &dead):
		return problem("sandbox_dead", dead.Error())
	case errors.Is(err, sandbox.ErrUnavailable):
		return problem("engine_unavailable", err.Error())
	}
	return problem("internal", "The server could not answer; its log says why.")
}

// fail writes err as a Problem. Errors of our own making are logged, the caller's are not.
func fail(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	p := asProblem(err)
	if p.Status >= http.StatusInternalServerError {
		log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "code", p.Code, "err", err)
	}
	var refused *rollouts.Error
	if errors.As(err, &refused) && refused.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(refused.After.Seconds()+0.999)))
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(fmt.Sprintf(`{"code":%q}`, p.Code))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}
