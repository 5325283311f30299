// Package nemogym serves rollouts as a NeMo-Gym resources server, which is also how verifiers and prime-rl
// reach them: POST /seed_session makes a rollout and sets a cookie, POST /{tool} runs a tool call in it,
// POST /verify grades it and gives the request back with a reward.
package nemogym

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"sort"
	"strings"

	"proctor/internal/compat"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

const (
	cookie  = "proctor_rollout"
	maxBody = 64 << 20 // bytes: /verify brings the whole conversation
)

// Server serves any number of sessions. It keeps none: the cookie names the rollout under a seal, so that
// a session outlives the server, and a graded rollout can be verified again.
type Server struct {
	host compat.Host
	seal []byte
}

// New makes a Server whose cookies are sealed with a secret.
func New(h compat.Host, secret []byte) *Server { return &Server{host: h, seal: secret} }

// Serve answers one request to endpoint, the path behind the mount point.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, endpoint string) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var answer any
	var err error
	switch r.Method + " " + endpoint {
	case "GET ":
		answer = map[string]any{"name": "proctor", "tools": rollouts.ToolList()}
	case "GET reverify_mode":
		answer = map[string]any{"reverify_mode": "unsupported"} // a grade is of a sandbox that is gone by then
	case "POST seed_session":
		answer, err = s.seed(w, r)
	case "POST verify":
		answer, err = s.verify(r)
	case "POST aggregate_metrics":
		answer, err = aggregate(r)
	default:
		if r.Method != http.MethodPost || endpoint == "" {
			err = &failure{http.StatusNotFound, "Not Found"}
			break
		}
		answer, err = s.tool(r, endpoint)
	}
	if err != nil {
		fail(w, err)
		return
	}
	compat.Answer(w, http.StatusOK, answer)
}

// failure is an error with its status, in the words of the framework's servers.
type failure struct {
	status int
	detail string
}

func (f *failure) Error() string { return f.detail }

func fail(w http.ResponseWriter, err error) {
	var f *failure
	var refused *rollouts.Error
	switch {
	case errors.As(err, &f):
	case errors.As(err, &refused) && refused.Code == rollouts.CodeAtCapacity:
		f = &failure{http.StatusTooManyRequests, refused.Detail}
	case errors.As(err, &refused) && !refused.Retry:
		f = &failure{http.StatusUnprocessableEntity, refused.Detail}
	default:
		f = &failure{http.StatusServiceUnavailable, compat.Words(err)}
	}
	compat.Answer(w, f.status, map[string]string{"detail": f.detail})
}

// seedBody is what names the task. A framework passes on a row of its dataset, so the name may stand at
// the top, among the verifier's metadata or among the request's.
type seedBody struct {
	TaskID    string           `json:"task_id"`
	Seed      int64            `json:"seed"`
	Mode      string           `json:"mode"`
	GroupID   *string          `json:"group_id"`
	Policy    *rollouts.Policy `json:"policy"`
	Verifier  map[string]any   `json:"verifier_metadata"`
	Responses struct {
		Metadata map[string]any `json:"metadata"`
	} `json:"responses_create_params"`
}

func (b *seedBody) task() string {
	if b.TaskID != "" {
		return b.TaskID
	}
	for _, m := range []map[string]any{b.Verifier, b.Responses.Metadata} {
		if id, ok := m["task_id"].(string); ok && id != "" {
			return id
		}
	}
	return ""
}

// seed makes a rollout and gives the client its cookie.
func (s *Server) seed(w http.ResponseWriter, r *http.Request) (any, error) {
	var in seedBody
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	task, err := compat.Pick(r.Context(), s.host, in.task(), in.Seed)
	if err != nil {
		return nil, err
	}
	req := rollouts.CreateRequest{TaskID: task, Mode: in.Mode, Seed: in.Seed, GroupID: in.GroupID}
	if in.Policy != nil {
		req.Policy = *in.Policy
	}
	made, err := s.host.Create(r.Context(), r.Header.Get("Idempotency-Key"), req)
	if err != nil {
		return nil, err
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: made.ID + "." + s.sealed(made.ID), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return map[string]any{"rollout_id": made.ID, "task_id": task, "instruction": made.Instruction, "workdir": made.Workdir, "tools": made.Tools}, nil
}

// session gives the rollout that the request's cookie opens.
func (s *Server) session(r *http.Request) (string, error) {
	c, err := r.Cookie(cookie)
	if err != nil {
		return "", &failure{http.StatusUnprocessableEntity, "there is no session; POST /seed_session sets the cookie of one"}
	}
	id, seal, _ := strings.Cut(c.Value, ".")
	if !hmac.Equal([]byte(seal), []byte(s.sealed(id))) {
		return "", &failure{http.StatusUnprocessableEntity, "the session is not known; POST /seed_session begins another"}
	}
	return id, nil
}

func (s *Server) sealed(id string) string {
	m := hmac.New(sha256.New, s.seal)
	m.Write([]byte("nemo-gym session " + id))
	return hex.EncodeToString(m.Sum(nil))
}

// tool runs one tool call of the agent's. The body is the arguments.
func (s *Server) tool(r *http.Request, name string) (any, error) {
	id, err := s.session(r)
	if err != nil {
		return nil, err
	}
	var args json.RawMessage
	if err := decode(r, &args); err != nil {
		return nil, err
	}
	seen, err := compat.Call(r.Context(), s.host, compat.Caller{Rollout: id, Principal: monitor.Agent}, r.Header.Get("Idempotency-Key"), name, args)
	var bad *monitor.BadCall
	if errors.As(err, &bad) {
		if bad.Field == "name" {
			return nil, &failure{http.StatusNotFound, "Not Found"}
		}
		return nil, &failure{http.StatusUnprocessableEntity, bad.Error()}
	}
	return seen, err
}

// verify grades the rollout. The answer is the request with a reward: what the framework sent with it is
// its own and goes back as it came.
func (s *Server) verify(r *http.Request) (any, error) {
	id, err := s.session(r)
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	grade, err := s.host.Grade(r.Context(), id, true)
	if err != nil {
		return nil, err
	}
	if grade.Reward == nil { // nobody knows what was earned: a reward of 0 would be a lie that trains
		return nil, &failure{http.StatusServiceUnavailable, "the rollout has no reward (" + grade.FailureClass + "); leave it out of the batch"}
	}
	out := map[string]any{}
	for k, v := range body {
		out[k] = v
	}
	out["reward"], out["outcome"], out["failure_class"], out["rollout_id"] = *grade.Reward, grade.Outcome, grade.FailureClass, id
	return out, nil
}

// aggregate gives the mean of every number that the verified responses share.
func aggregate(r *http.Request) (any, error) {
	var body struct {
		Responses []map[string]any `json:"verify_responses"`
	}
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	sums, counts := map[string]float64{}, map[string]int{}
	for _, v := range body.Responses {
		for k, x := range v {
			if n, ok := x.(float64); ok && !math.IsNaN(n) {
				sums[k] += n
				counts[k]++
			}
		}
	}
	names := make([]string, 0, len(sums))
	for k := range sums {
		names = append(names, k)
	}
	sort.Strings(names)
	out := map[string]any{"count": len(body.Responses)}
	for _, k := range names {
		out["mean/"+k] = sums[k] / float64(counts[k])
	}
	return map[string]any{"agent_metrics": out}, nil
}

func decode(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &failure{http.StatusRequestEntityTooLarge, "the body is too large"}
	case err != nil:
		return err
	case len(bytes.TrimSpace(body)) == 0:
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &failure{http.StatusUnprocessableEntity, "the body does not fit: " + err.Error()}
	}
	return nil
}
