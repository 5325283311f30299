package rollouts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"proctor/judge"
	"proctor/monitor"
)

// outJudge cannot be asked.
type outJudge struct{ fakeJudge }

func (outJudge) Judge(context.Context, judge.Case) judge.Opinion {
	return judge.Opinion{By: "out", Verdict: judge.Unsure, Failure: judge.FailOutage}
}

// How blocked calls are answered is chosen per rollout, over the server's default, and survives a
// restart.
func TestAnswersAreChosenPerRollout(t *testing.T) {
	for name, tc := range map[string]struct{ server, rollout, want string }{
		"nothing said":     {"", "", "No such file"},
		"the server's":     {monitor.AnswerExplicit, "", "This call was not run"},
		"the rollout's":    {"", monitor.AnswerExplicit, "This call was not run"},
		"over the other's": {monitor.AnswerExplicit, monitor.AnswerDecoy, "No such file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) { w.opt.Policy.Answers = tc.server })
			id := w.create(func(r *CreateRequest) { r.Answers = tc.rollout }).ID
			if obs := w.do(id, bash(t, "", "echo CHEAT")); !strings.Contains(obs.Output, tc.want) {
				t.Errorf("shown %q", obs.Output)
			}
			w.crash()
			w.open()
			if obs := w.do(id, bash(t, "", "echo CHEAT")); !strings.Contains(obs.Output, tc.want) {
				t.Errorf("after a restart, shown %q", obs.Output)
			}
		})
	}
}

// What is done while the judge is out is chosen per rollout, and named on the call.
func TestOutagePolicyIsChosenPerRollout(t *testing.T) {
	w := newWorld(t, func(w *world) { w.opt.Judge = outJudge{} })
	for word, want := range map[string]string{"": monitor.Block, monitor.OnExecute: monitor.Flag, monitor.OnDecoy: monitor.Block} {
		id := w.create(func(r *CreateRequest) { r.OnOutage = word }).ID
		w.do(id, bash(t, "", "echo ODD"))
		v := w.trajectory(id).Calls[0].Verdict
		if v.Decision != want || v.Policy == "" || word != "" && v.Policy != word {
			t.Errorf("%q: decision %s by policy %q, want %s", word, v.Decision, v.Policy, want)
		}
	}
}

// Words that are none of the list's are refused by name.
func TestAnswersRefusesUnknownWords(t *testing.T) {
	w := newWorld(t)
	for field, change := range map[string]func(*CreateRequest){
		"answers":    func(r *CreateRequest) { r.Answers = "loud" },
		"on_unsure":  func(r *CreateRequest) { r.OnUnsure = "panic" },
		"on_failure": func(r *CreateRequest) { r.OnFailure = "block" },
		"on_outage":  func(r *CreateRequest) { r.OnOutage = "wait" },
	} {
		req := CreateRequest{TaskID: "t"}
		change(&req)
		_, err := w.m.Create(t.Context(), "", req)
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != CodeInvalidField || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
