package monitor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"proctor/judge"
	"proctor/monitor/decoy"
	"proctor/monitor/witness"
	"proctor/rules"
	"proctor/sandbox"
)

// Gate is the one straight line that every call of one rollout takes. It lives as long as its
// rollout and is pinned to one rule set, one judge and one policy. Calls are serial, so Do must not
// be called twice at once, control calls (bash_output, bash_input, bash_kill) aside.
//
// A Gate in mode Off needs only Box and Record.
type Gate struct {
	Mode   string // Enforce, Shadow, Off
	Policy Policy
	Task   judge.Task

	Normalizer Normalizer
	Rules      Matcher
	Judge      judge.Judge
	Box        Executor
	Record     Recorder
	Decoys     Decoyer
	Witness    Witness  // nil: none
	Canaries   Canaries // nil: none
	Honeypots  []string // files that hold nothing but canaries
	PacksID    string   // digest of the rule set, for the judge's cache
	RolloutID  string

	Log   *slog.Logger                        // nil: discarded
	Sleep func(time.Duration)                 // nil: time.Sleep; for tests
	Seen  func(stage string, d time.Duration) // nil: none; observer of each step's time

	mu      sync.Mutex
	history []string // canonical lines of earlier calls, oldest first; at most historyLimit
}

// historyLimit bounds how many earlier lines a Gate keeps for judges.
const historyLimit = 32

// passage is one call on its way through the Gate.
type passage struct {
	call   Call
	rec    *Record
	event  rules.Event
	hits   []rules.Hit
	answer *decoy.Answer // nil: the call is executed as it is
	again  bool          // it was under way when an earlier server died
}

// Do takes a call through the eight steps and gives what the agent is shown. An error means that
// there is no observation: the sandbox is dead (*sandbox.DeadError), the engine or the store is
// out. What was recorded stays recorded.
func (g *Gate) Do(ctx context.Context, call Call) (Observation, error) {
	if call.Principal == Harness {
		defer g.HarnessRan(ctx)
	}
	p := g.enter(call)
	g.step("normalise", func() { g.normalise(ctx, p) }) // 1
	g.step("match", func() { g.match(p) })              // 2
	g.step("decide", func() { g.decide(ctx, p) })       // 3, 4: policy, and the judge if it needs one
	g.step("answer", func() { g.choose(ctx, p) })       //       which decoy, if any
	if err := g.Record.Intent(ctx, p.rec); err != nil { // 5
		return Observation{}, fmt.Errorf("record intent: %w", err)
	}
	return g.finish(ctx, p)
}

// Resume takes a call whose intent was recorded, by a server that died since, through the steps
// that are left. The verdict stands as recorded; a call that the sandbox has seen is joined, not
// run again.
func (g *Gate) Resume(ctx context.Context, call Call, rec *Record) (Observation, error) {
	p := &passage{call: call, rec: rec, hits: rec.Verdict.Hits, again: true}
	if rec.Event != nil {
		p.event = *rec.Event
	}
	rec.Witness = witness.Off // it ran in part, perhaps whole, while nobody watched
	if !g.takeUp(p) {
		g.choose(ctx, p)
	}
	return g.finish(ctx, p)
}

// takeUp gives a call that ran as it was typed, though blocked, the same answer again: what was
// proved for it need not be provable any more now that it has run.
func (g *Gate) takeUp(p *passage) bool {
	note := p.rec.Verdict.Decoy
	if note == nil || note.How != HowOwn || p.rec.BoxCommand == nil {
		return false
	}
	if keeper, ok := g.Decoys.(Keeper); ok {
		keeper.Proved(note.Absent)
	}
	p.take(&decoy.Answer{Family: note.Family, Action: p.rec.Verdict.Action, Run: true, Own: true, Command: *p.rec.BoxCommand, Absent: note.Absent})
	return true
}

// finish runs steps 6 to 8.
func (g *Gate) finish(ctx context.Context, p *passage) (Observation, error) {
	result, err := g.act(ctx, p) // 6
	if err != nil {
		p.rec.Error = err.Error()
	} else {
		g.review(ctx, p, result) // 7
	}
	p.rec.DurationMS = time.Since(p.rec.StartedAt).Milliseconds()
	if rerr := g.Record.Outcome(ctx, p.rec); rerr != nil { // 8
		return Observation{}, fmt.Errorf("record outcome: %w", rerr)
	}
	if err != nil {
		return Observation{}, err
	}
	g.remember(p)
	return *p.rec.Observation, nil
}

// enter opens the record of a call.
func (g *Gate) enter(call Call) *passage {
	kind := witness.Off
	if g.Witness != nil {
		kind = g.Witness.Kind()
	}
	return &passage{call: call, rec: &Record{
		CallID: call.ID, Key: call.Key, ArgsSHA256: ArgsSHA256(call), Name: call.Name, Arguments: call.Arguments,
		Principal: cmp.Or(call.Principal, Agent), Witness: kind, StartedAt: time.Now().UTC(),
		Verdict: Verdict{Decision: Allow, Action: Executed, Hits: []rules.Hit{}, Evidence: []string{}},
	}}
}

// silent reports whether a call passes unlooked at: in mode Off, and where the harness made it.
func (g *Gate) silent(call Call) bool { return g.Mode == Off || call.Principal == Harness }

// normalise makes the event. The normaliser is bounded and does not fail; should it ever panic, the
// call is an opaque event on its raw text, so that the raw-text rules still see it.
func (g *Gate) normalise(ctx context.Context, p *passage) {
	if g.silent(p.call) {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			g.log().Error("normaliser panicked", "rollout", g.RolloutID, "panic", r, "stack", string(debug.Stack()))
			p.event = rules.Event{Call: rules.CallFacts{Tool: p.call.Name, Text: rawText(p.call)}, Opaque: true, Notes: []string{"normaliser failed"}}
			p.rec.Event = &p.event
		}
	}()
	p.event = g.Normalizer.Event(ctx, p.call.Facts)
	p.rec.Event = &p.event
}

// match gives the hits of the event.
func (g *Gate) match(p *passage) {
	if g.silent(p.call) {
		return
	}
	if hits := g.Rules.Match(&p.event); len(hits) > 0 {
		p.hits = hits
		p.rec.Verdict.Hits = hits
	}
}

// choose picks the answer of a blocked call; for any other call it asks whether an earlier decoy
// denied what the call touches, so that what was not there stays not there.
func (g *Gate) choose(ctx context.Context, p *passage) {
	if g.Mode != Enforce || g.Decoys == nil || g.silent(p.call) {
		return
	}
	v := &p.rec.Verdict
	req := decoy.Request{Ordinal: p.rec.Ordinal, Tool: p.call.Name, Call: p.call.Box, Event: p.event, Hits: v.confirmed()}
	if v.Decision == Block {
		answer, told := g.told(v)
		if !told {
			answer = g.Decoys.Answer(ctx, req)
		}
		p.take(&answer)
		return
	}
	if answer, ok := g.Decoys.Recall(ctx, req); ok {
		p.take(&answer)
	}
}

// take makes answer the passage's.
func (p *passage) take(answer *decoy.Answer) {
	p.answer = answer
	p.rec.Verdict.Action = Decoyed
	if answer.Action == Filtered {
		p.rec.Verdict.Action = Filtered
	}
	p.rec.Verdict.Decoy = &DecoyNote{Family: answer.Family, How: how(answer), Absent: answer.Absent}
	if answer.Run { // also where it is "", the agent's own call: so a later server asks the sandbox for it
		p.rec.BoxCommand = &answer.Command
	}
}

// how names the way in which an answer is made.
func how(a *decoy.Answer) string {
	switch {
	case a.Family == FamilyExplicit:
		return HowTold
	case a.Own:
		return HowOwn
	case a.Run && a.Kept:
		return HowCut
	}
	return HowWhole
}

// act runs the call in the sandbox, or renders its decoy.
func (g *Gate) act(ctx context.Context, p *passage) (sandbox.Result, error) {
	if p.call.Name == ToolSubmit {
		zero := 0
		return sandbox.Result{Exit: &zero, Started: p.rec.StartedAt}, nil
	}
	if p.answer != nil && !p.answer.Run {
		g.sleep(p.answer.Delay)
		return p.answer.Result, nil
	}
	call := p.call.Box
	call.ID = p.rec.BoxID
	if p.answer != nil && p.answer.Command != "" { // else the agent's own call runs, and only its result is rewritten
		call.Command = p.answer.Command
		if call.Op != sandbox.OpSpawn {
			call.Op = sandbox.OpShell
		}
	}
	end := g.watch(p)
	started := time.Now()
	result, err := g.Box.Do(ctx, call)
	g.seen("box", time.Since(started))
	end()
	if err != nil {
		return result, err
	}
	p.rec.Cwd = result.Cwd
	if p.answer != nil && p.answer.Rewrite != nil {
		result = p.answer.Rewrite(result)
		g.sleep(p.answer.Delay - time.Since(started)) // nothing of the agent's own ran for as long as it would have
	}
	return result, nil
}

// remember lets state follow the call: the normaliser's, and the lines that a judge is shown of
// earlier calls.
func (g *Gate) remember(p *passage) {
	if g.silent(p.call) {
		return
	}
	note := p.rec.Verdict.Decoy
	ran := p.rec.Verdict.Action != Decoyed || note != nil && (note.How == HowOwn || note.How == HowCut)
	g.Normalizer.Observe(p.call.Facts, ran, p.rec.Cwd)
	if follower, ok := g.Normalizer.(Follower); ok && ran && p.call.Box.Op == sandbox.OpSpawn && p.rec.Observation != nil && p.rec.Observation.Handle != nil {
		follower.Started(*p.rec.Observation.Handle, p.call.Facts, p.call.Box.PTY)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.history = append(g.history, historyLine(p.call, p.event))
	if n := len(g.history) - historyLimit; n > 0 {
		g.history = append([]string(nil), g.history[n:]...)
	}
}

// Restore replays a finished record after a restart, so that state, sequences and the decoys'
// memory are as they were.
func (g *Gate) Restore(call Call, rec *Record) {
	if g.Mode == Off || rec.Event == nil {
		return
	}
	p := &passage{call: call, rec: rec, event: *rec.Event, hits: rec.Verdict.Hits}
	g.Rules.Match(&p.event)
	g.recall(p)
	g.restoreOpenings(p)
	g.remember(p)
}

// recall lets the decoys' maker take up what a finished record says that it proved and denied.
func (g *Gate) recall(p *passage) {
	rec, note := p.rec, p.rec.Verdict.Decoy
	keeper, ok := g.Decoys.(Keeper)
	if !ok {
		return
	}
	req := decoy.Request{Ordinal: rec.Ordinal, Tool: p.call.Name, Call: p.call.Box, Event: p.event}
	if note != nil {
		keeper.Proved(note.Absent)
		if note.How == HowWhole || note.How == HowCut || note.How == "" {
			req.Hits = rec.Verdict.confirmed()
			keeper.Remember(req)
			return
		}
	}
	keeper.Follow(req)
}

// HarnessRan is to be called when the harness ran something in the sandbox outside the Gate: what it
// left there is not the agent's.
func (g *Gate) HarnessRan(ctx context.Context) {
	if keeper, ok := g.Decoys.(Keeper); ok && g.Mode == Enforce {
		keeper.Disturbed(ctx)
	}
}

// step runs one step under the observer's clock.
func (g *Gate) step(name string, f func()) {
	started := time.Now()
	f()
	g.seen(name, time.Since(started))
}

func (g *Gate) seen(stage string, d time.Duration) {
	if g.Seen != nil {
		g.Seen(stage, d)
	}
}

func (g *Gate) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	if g.Sleep != nil {
		g.Sleep(d)
		return
	}
	time.Sleep(d)
}

func (g *Gate) log() *slog.Logger {
	if g.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Log
}
