package rollouts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"proctor/monitor"
	"proctor/sandbox"
)

// execName is how a one-shot of the harness is named in the record.
const execName = "exec"

// execShown is how much of each stream of a one-shot the record shows; a keyed one keeps the whole
// answer beside, so that a retry gets it.
const execShown = 64 << 10

// execArguments are a one-shot's arguments in the record.
type execArguments struct {
	Argv     []string `json:"argv"`
	Stdin    []byte   `json:"stdin,omitempty"` // base64 in JSON
	Env      []string `json:"env,omitempty"`
	Dir      string   `json:"dir,omitempty"`
	User     string   `json:"user,omitempty"`
	TimeoutS float64  `json:"timeout_s,omitempty"`
	Limit    int64    `json:"limit,omitempty"`
}

// Exec runs one argv by the harness: not gated, recorded as the harness's. e.ID is its
// Idempotency-Key, "" for none. It neither queues behind the agent's calls nor touches its shell.
func (m *Manager) Exec(ctx context.Context, id string, e sandbox.Exec) (sandbox.ExecResult, error) {
	if len(e.Argv) == 0 || e.Argv[0] == "" {
		return sandbox.ExecResult{}, refuse(CodeInvalidField, "field argv: must be a list of at least one text: the program and its arguments")
	}
	for _, arg := range e.Argv {
		if strings.ContainsRune(arg, 0) {
			return sandbox.ExecResult{}, refuse(CodeInvalidField, "field argv: an argument holds a NUL byte, which no program can be given")
		}
	}
	if len(e.ID) > maxKey {
		return sandbox.ExecResult{}, refuse(CodeBadRequest, "the Idempotency-Key is longer than %d bytes", maxKey)
	}
	key := callKey{monitor.Harness, e.ID}
	arguments, err := json.Marshal(execArguments{Argv: e.Argv, Stdin: e.Stdin, Env: e.Env, Dir: e.Dir, User: e.User,
		TimeoutS: e.Timeout.Seconds(), Limit: e.Limit})
	if err != nil {
		return sandbox.ExecResult{}, asError(CodeInternal, "the arguments do not encode", err)
	}
	hash := execHash(arguments)
	r := m.find(id)
	if r == nil {
		_, res, err := m.recorded(ctx, id, key, hash)
		if err != nil {
			return sandbox.ExecResult{}, err
		}
		if res == nil {
			return sandbox.ExecResult{}, errConflict()
		}
		return *res, nil
	}
	f, err := r.fly(wanted{key: key, args: hash}, func(ctx context.Context, f *flight) error {
		return r.oneShot(ctx, f, arguments, hash, key.key)
	})
	if err != nil {
		return sandbox.ExecResult{}, err
	}
	if err := r.await(ctx, f); err != nil {
		return sandbox.ExecResult{}, err
	}
	return f.exec, nil
}

func execHash(arguments []byte) string {
	h := sha256.Sum256(append([]byte(execName+"\x00"), arguments...))
	return hex.EncodeToString(h[:])
}

// oneShot writes the intent of a one-shot unless it is there, runs or joins it, and writes its
// outcome.
func (r *rollout) oneShot(ctx context.Context, f *flight, arguments json.RawMessage, hash, key string) error {
	rec := &monitor.Record{
		Key: key, ArgsSHA256: hash, Name: execName, Arguments: arguments, Principal: monitor.Harness, Witness: "none",
		StartedAt: r.m.opt.Clock().UTC(), Verdict: monitor.Verdict{Decision: monitor.Allow, Action: monitor.Executed},
	}
	if f.resume {
		stored, err := r.m.opt.Store.CallByOrdinal(ctx, r.id, f.ordinal)
		if err != nil {
			return err
		}
		if rec, _, err = decodeCall(stored); err != nil {
			return err
		}
	} else if err := r.rec.Intent(ctx, rec); err != nil {
		return fmt.Errorf("record intent: %w", err)
	}
	return r.finishExec(ctx, f, rec)
}

func (r *rollout) finishExec(ctx context.Context, f *flight, rec *monitor.Record) error {
	var a execArguments
	if err := json.Unmarshal(rec.Arguments, &a); err != nil {
		return fmt.Errorf("call %d: its arguments do not decode: %w", rec.Ordinal, err)
	}
	res, err := r.box.sess.Exec(ctx, sandbox.Exec{
		ID: rec.BoxID, Argv: a.Argv, Stdin: a.Stdin, Env: a.Env, Dir: a.Dir, User: a.User, Limit: a.Limit,
		Timeout: time.Duration(a.TimeoutS * float64(time.Second)),
	})
	r.gate.HarnessRan(ctx)
	r.box.fault(rec.BoxID, err)
	rec.DurationMS = time.Since(rec.StartedAt).Milliseconds()
	var kept *sandbox.ExecResult
	if err != nil {
		rec.Error = err.Error()
	} else {
		shown := execObservation(res)
		rec.Observation, rec.Original = &shown, &shown
		if rec.Key != "" {
			kept = &res
		}
	}
	if werr := r.rec.outcome(ctx, rec, kept); werr != nil {
		return errors.Join(fmt.Errorf("record outcome: %w", werr), err)
	}
	if err == nil && f != nil {
		f.exec = res
	}
	return err
}

// execObservation shows a one-shot in the six fields of any observation.
func execObservation(res sandbox.ExecResult) monitor.Observation {
	head := func(b []byte) (string, bool) {
		cut := len(b) > execShown
		if cut {
			b = b[:execShown]
		}
		return string(bytes.ToValidUTF8(b, []byte("\uFFFD"))), cut
	}
	out, cutOut := head(res.Stdout)
	errs, cutErr := head(res.Stderr)
	return monitor.Observation{Output: out + errs, ExitCode: res.Exit, TimedOut: res.TimedOut, Truncated: res.Truncated || cutOut || cutErr}
}
