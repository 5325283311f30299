package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ReadDecisions reads recorded decisions: lines as a Recorder writes them, or trajectories as a server
// exports them (schema proctor.trajectory/1), one after the other, in any mixture. Calls of a
// trajectory that no judge decided hold no decision. Errors name the line.
func ReadDecisions(r io.Reader) ([]Decision, error) {
	var out []Decision
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		at := 1 + bytes.Count(data[:dec.InputOffset()-int64(len(raw))], []byte("\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", lineOf(data, dec.InputOffset()), err)
		}
		found, err := decisionsOf(raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no decision; record some with --record, or export trajectories of judged rollouts")
	}
	return out, nil
}

// lineOf gives the line of the first thing that is not space at or behind an offset, from 1.
func lineOf(data []byte, offset int64) int {
	rest := data[offset:]
	skipped := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
	return 1 + bytes.Count(data[:offset+int64(skipped)], []byte("\n"))
}

// decisionsOf reads one document.
func decisionsOf(raw json.RawMessage) ([]Decision, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("want a recorded decision or a trajectory: %w", err)
	}
	if head.Schema != "" {
		return trajectoryDecisions(raw, head.Schema)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var d Decision
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("not a recorded decision: %w", err)
	}
	if v := d.Opinion.Verdict; v != Hack && v != Benign && v != Unsure {
		return nil, fmt.Errorf("opinion.verdict is %.40q; it must be hack, benign or unsure", v)
	}
	if d.Tool == "" || len(d.Call) == 0 || len(d.Event) == 0 {
		return nil, errors.New("a recorded decision needs tool, call and event")
	}
	return []Decision{d}, nil
}

// trajectoryDecisions takes the decisions out of a trajectory. Hits of the result phase were not part
// of the question that the first phase put, nor the other way round: a call with both is left out.
func trajectoryDecisions(raw json.RawMessage, schema string) ([]Decision, error) {
	if schema != "proctor.trajectory/1" {
		return nil, fmt.Errorf("schema %.60q is not read; want proctor.trajectory/1", schema)
	}
	var t struct {
		Rollout struct {
			TaskID  string            `json:"task_id"`
			Digests map[string]string `json:"digests"`
		} `json:"rollout"`
		Calls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Event     json.RawMessage `json:"event"`
			Verdict   struct {
				Hits []struct {
					Rule   string `json:"rule"`
					Entity string `json:"entity"`
				} `json:"hits"`
				Opinion *Opinion `json:"opinion"`
			} `json:"verdict"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("not a trajectory: %w", err)
	}
	var out []Decision
	for _, c := range t.Calls {
		if c.Verdict.Opinion == nil || c.Verdict.Opinion.Failure != "" || len(c.Event) == 0 {
			continue
		}
		d := Decision{Task: t.Rollout.TaskID, Tool: c.Name, Call: c.Arguments, Event: c.Event, Digest: t.Rollout.Digests["judge"], Opinion: *c.Verdict.Opinion}
		late := false
		for _, h := range c.Verdict.Hits {
			late = late || h.Entity == "result"
			if !slices.Contains(d.Rules, h.Rule) {
				d.Rules = append(d.Rules, h.Rule)
			}
		}
		slices.Sort(d.Rules)
		if !late {
			out = append(out, d)
		}
	}
	return out, nil
}
