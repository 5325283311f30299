package rollouts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/monitor/witness"
	"proctor/sandbox"
	"proctor/tasks"
)

// document is what the store keeps of a rollout beside its calls: all that a later server needs to
// take it up again.
type document struct {
	View      View                 `json:"view"`
	Task      *tasks.Task          `json:"task"`
	TaskDir   string               `json:"task_dir,omitempty"`
	Image     Image                `json:"image"`
	Base      string               `json:"base,omitempty"` // the image of the snapshot that a fork's sandbox was made from
	Snapshots []snapshotDoc        `json:"snapshots,omitempty"`
	Limits    sandbox.Limits       `json:"limits"`
	Deadline  time.Time            `json:"deadline"`      // end of its lifetime
	Ends      uptime               `json:"ends,omitzero"` // the same, of the boot that it began in
	Lease     time.Duration        `json:"lease"`
	PolicyKey string               `json:"policy_key,omitempty"` // of the policy's server
	Salt      []byte               `json:"salt,omitempty"`       // of a token derived from an Idempotency-Key
	Can       sandbox.Capabilities `json:"can"`
	Engine    string               `json:"engine"`
	Canaries  canaries             `json:"canaries,omitzero"`
	Watched   []string             `json:"watched,omitempty"` // protected paths that were there when the witness began
	Offline   bool                 `json:"offline,omitempty"` // its sandbox reaches nothing but loopback
}

// row gives the store's row of a rollout.
func (d *document) row(token []byte, box string) (*store.Rollout, error) {
	doc, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode rollout: %w", err)
	}
	if token == nil {
		token = []byte{} // a killed token: no hash is that short
	}
	group := ""
	if d.View.GroupID != nil {
		group = *d.View.GroupID
	}
	return &store.Rollout{
		ID: d.View.ID, GroupID: group, TaskID: d.View.TaskID, Policy: d.View.Policy.Name, Status: d.View.Status,
		TokenHash: token, Box: box, CreatedAt: d.View.CreatedAt, Doc: doc,
	}, nil
}

func readDocument(row *store.Rollout) (*document, error) {
	var d document
	if err := json.Unmarshal(row.Doc, &d); err != nil {
		return nil, fmt.Errorf("rollout %s: its document does not decode: %w", row.ID, err)
	}
	if d.Task != nil {
		d.Task.Dir = d.TaskDir
	}
	return &d, nil
}

// intentDoc is a call's document before it acted.
type intentDoc struct {
	CallID     string          `json:"call_id,omitempty"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
	Witness    string          `json:"witness"`
	Verdict    monitor.Verdict `json:"verdict"`
	Event      json.RawMessage `json:"event,omitempty"`
	StartedAt  time.Time       `json:"started_at"`
	ArgsSHA256 string          `json:"args"`
}

// outcomeDoc is what the outcome adds.
type outcomeDoc struct {
	Verdict     monitor.Verdict      `json:"verdict"`
	Observation *monitor.Observation `json:"observation"`
	// Same says that the original is the observation, which is so for nearly every call and
	// halves what is written.
	Same       bool                 `json:"same,omitempty"`
	Original   *monitor.Observation `json:"original,omitempty"`
	DurationMS int64                `json:"duration_ms"`
	Error      string               `json:"error,omitempty"`
	Exec       *sandbox.ExecResult  `json:"exec,omitempty"`    // of a keyed one-shot: the whole answer
	Witness    string               `json:"witness,omitempty"` // where it is another than the intent said
}

func encodeIntent(rec *monitor.Record) ([]byte, error) {
	d := intentDoc{
		CallID: rec.CallID, Name: rec.Name, Arguments: rec.Arguments, Witness: rec.Witness, Verdict: rec.Verdict,
		StartedAt: rec.StartedAt, ArgsSHA256: rec.ArgsSHA256,
	}
	if rec.Event != nil {
		event, err := encode(rec.Event)
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		d.Event = event
	}
	return encode(d)
}

// encode gives v as JSON without HTML escapes: an agent's arguments must come back byte for byte,
// since their hash tells a retry from another call.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func encodeOutcome(rec *monitor.Record, exec *sandbox.ExecResult) ([]byte, error) {
	d := outcomeDoc{
		Verdict: rec.Verdict, Observation: rec.Observation, Original: rec.Original,
		DurationMS: rec.DurationMS, Error: rec.Error, Exec: exec,
	}
	if rec.Witness == witness.Off {
		d.Witness = witness.Off
	}
	if sameObservation(rec.Observation, rec.Original) {
		d.Same, d.Original = true, nil
	}
	return encode(d)
}

func sameObservation(a, b *monitor.Observation) bool {
	if a == nil || b == nil {
		return false
	}
	same := func(x, y *string) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return a.CallID == b.CallID && a.Output == b.Output && a.TimedOut == b.TimedOut && a.Truncated == b.Truncated &&
		(a.ExitCode == nil) == (b.ExitCode == nil) && (a.ExitCode == nil || *a.ExitCode == *b.ExitCode) &&
		same(a.Handle, b.Handle) && same(a.Base64, b.Base64)
}

// decodeCall gives the record of a stored call.
func decodeCall(c *store.Call) (*monitor.Record, *sandbox.ExecResult, error) {
	return decodeRecord(c, true)
}

// decodeRecord is decodeCall; without event the facts of the call are left out, which are most of its bytes and
// which exports do not tell.
func decodeRecord(c *store.Call, event bool) (*monitor.Record, *sandbox.ExecResult, error) {
	var in intentDoc
	if err := json.Unmarshal(c.Intent, &in); err != nil {
		return nil, nil, fmt.Errorf("call %d: its intent does not decode: %w", c.Ordinal, err)
	}
	rec := &monitor.Record{
		Ordinal: c.Ordinal, CallID: in.CallID, Key: c.Key, ArgsSHA256: in.ArgsSHA256, Name: in.Name, Arguments: in.Arguments,
		Principal: c.Principal, Witness: in.Witness, Verdict: in.Verdict, BoxID: c.BoxID, BoxCommand: c.BoxCommand,
		StartedAt: in.StartedAt, Cwd: c.Cwd,
	}
	if event && len(in.Event) > 0 {
		if err := json.Unmarshal(in.Event, &rec.Event); err != nil {
			return nil, nil, fmt.Errorf("call %d: its event does not decode: %w", c.Ordinal, err)
		}
	}
	if !c.Done {
		return rec, nil, nil
	}
	var out outcomeDoc
	if err := json.Unmarshal(c.Outcome, &out); err != nil {
		return nil, nil, fmt.Errorf("call %d: its outcome does not decode: %w", c.Ordinal, err)
	}
	rec.Verdict, rec.Observation, rec.Original = out.Verdict, out.Observation, out.Original
	rec.DurationMS, rec.Error = out.DurationMS, out.Error
	if out.Witness != "" {
		rec.Witness = out.Witness
	}
	if out.Same && out.Observation != nil {
		original := *out.Observation
		rec.Original = &original
	}
	return rec, out.Exec, nil
}
