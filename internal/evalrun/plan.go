package evalrun

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Protocols: how the model makes calls.
const (
	Auto  = "auto"  // tools, or text where the endpoint refuses tools
	Tools = "tools" // tool calls of the chat API
	Text  = "text"  // one ```bash block a reply
)

// Plan is what a run does. What it holds cannot change once the run has begun, since attempts made
// under different plans cannot be compared.
type Plan struct {
	ID          string    `json:"id"`
	Tasks       []string  `json:"tasks"`
	N           int       `json:"n"` // attempts at each task
	Model       string    `json:"model,omitempty"`
	BaseURL     string    `json:"base_url,omitempty"`
	Protocol    string    `json:"protocol,omitempty"`
	Temperature float64   `json:"temperature,omitempty"` // 0: the endpoint's default
	Agent       string    `json:"agent,omitempty"`       // command line of an outside agent, in place of a model
	Mode        string    `json:"mode,omitempty"`        // the rollouts': enforce, shadow, off
	Preset      string    `json:"preset,omitempty"`
	NoGrade     bool      `json:"no_grade,omitempty"` // attempts are recorded and end without a reward
	Budget      Budget    `json:"budget"`
	Prices      Prices    `json:"prices"`
	CreatedAt   time.Time `json:"created_at"`
}

// Budget bounds one attempt; what runs out ends the agent's part, and the attempt is graded as it is.
// Zero fields are no bound.
type Budget struct {
	Turns   int     `json:"turns"`   // replies of the model
	Tokens  int     `json:"tokens"`  // of prompts and replies together
	Cost    float64 `json:"cost"`    // in the unit of Prices
	Seconds float64 `json:"seconds"` // wall clock of the agent's part, over all sittings
	Context int     `json:"context"` // tokens that a prompt may hold; near it the talk is summarised
}

// Prices are per million tokens.
type Prices struct {
	In  float64 `json:"in"`
	Out float64 `json:"out"`
}

// Of gives the cost of tokens.
func (p Prices) Of(in, out int) float64 { return (float64(in)*p.In + float64(out)*p.Out) / 1e6 }

// ErrOtherRun says that a folder holds a run with another plan.
var ErrOtherRun = errors.New("the folder holds another run")

// openPlan gives the plan of a run folder: the one it holds, which must be the same but for id and
// date, or p, written with an id of its own.
func openPlan(dir string, p Plan) (Plan, error) {
	path := filepath.Join(dir, "run.json")
	old, err := ReadPlan(dir)
	if errors.Is(err, fs.ErrNotExist) {
		id := make([]byte, 6)
		if _, err := rand.Read(id); err != nil {
			return p, fmt.Errorf("make an id: %w", err)
		}
		p.ID, p.CreatedAt = hex.EncodeToString(id), time.Now().UTC().Truncate(time.Second)
		body, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return p, err
		}
		return p, writeWhole(path, append(body, '\n'))
	}
	if err != nil {
		return p, err
	}
	p.ID, p.CreatedAt = old.ID, old.CreatedAt
	if what := differs(old, p); what != "" {
		return p, fmt.Errorf("%w: %s is not the same; give the run that is meant, or another folder", ErrOtherRun, what)
	}
	return old, nil
}

// differs names the first field in which two plans are not the same.
func differs(a, b Plan) string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
		if name == "tasks" && len(a.Tasks)+len(b.Tasks) > 6 {
			return fmt.Sprintf("tasks (there %d, here %d)", len(a.Tasks), len(b.Tasks))
		}
		return fmt.Sprintf("%s (there %v, here %v)", name, x.Field(i).Interface(), y.Field(i).Interface())
	}
	return ""
}

// ReadPlan reads a run folder's plan. It wraps fs.ErrNotExist where there is none.
func ReadPlan(dir string) (Plan, error) {
	var p Plan
	path := filepath.Join(dir, "run.json")
	body, err := os.ReadFile(path)
	if err != nil {
		return p, fmt.Errorf("no run in %s: %w", dir, err)
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("%s does not decode; it is written by `proctor run`: %w", path, err)
	}
	return p, nil
}

// check refuses plans that mean nothing.
func (p *Plan) check() error {
	sorted := slices.Clone(p.Tasks)
	slices.Sort(sorted)
	switch {
	case len(p.Tasks) == 0:
		return errors.New("no tasks: name some")
	case len(slices.Compact(sorted)) != len(p.Tasks):
		return errors.New("a task is named twice")
	case p.N < 1 || p.N > 1000:
		return fmt.Errorf("n is %d; 1 to 1000 attempts at a task can be made", p.N)
	case p.Agent == "" && (p.Model == "" || p.BaseURL == ""):
		return errors.New("who is to work on them: give model and base URL, or an agent's command")
	case p.Agent != "" && p.Model != "" && p.BaseURL != "":
		return errors.New("both a model's endpoint and an agent are given; give one")
	case !slices.Contains([]string{Auto, Tools, Text}, p.Protocol):
		return fmt.Errorf("protocol is %q; there are auto, tools, text", p.Protocol)
	}
	return nil
}

// writeWhole writes a file so that no reader sees half of it, and it outlives a crash.
func writeWhole(path string, body []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already where all went well
	_, werr := tmp.Write(body)
	if err := errors.Join(werr, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
