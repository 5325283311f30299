package trajectory

import (
	"strings"
	"testing"
)

const (
	shown = `{"call_id":"","output":"x","exit_code":0,"timed_out":false,"truncated":false,"handle":null}`
	// sumX is the SHA-256 of "x".
	sumX  = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	ran   = `{"ordinal":1,"principal":"agent","verdict":{"decision":"allow","action":"executed","hits":[]},"observation":` + shown + `,"original":` + shown + `}`
	decoy = `{"ordinal":1,"principal":"agent","verdict":{"decision":"block","action":"decoyed","hits":[{}],"decoy":{"family":"f","sha256":"` + sumX + `"}},"observation":` + shown + `,"original":null}`
)

func doc(rollout string, calls ...string) string {
	return `{"schema":"proctor.trajectory/1","rollout":{"id":"r",` + rollout + `},"calls":[` + strings.Join(calls, ",") + `],"segments":[],"grade":null}`
}

func TestCheck(t *testing.T) {
	const graded = `"mode":"enforce","status":"graded","failure_class":"none","reward":1,"calls":1`
	for name, c := range map[string]struct {
		doc  string
		want string // part of the only problem, "" for none
	}{
		"executed":            {doc(graded, ran), ""},
		"decoyed":             {doc(graded, decoy), ""},
		"running, pending":    {doc(`"mode":"enforce","status":"running","calls":0`, `{"ordinal":1,"principal":"agent","verdict":{"decision":"allow","action":"executed"}}`), ""},
		"infra":               {doc(`"mode":"enforce","status":"failed","failure_class":"infra","reward":null,"calls":0`), ""},
		"model":               {doc(`"mode":"enforce","status":"failed","failure_class":"model","reward":0,"calls":0`), ""},
		"deleted":             {doc(`"mode":"enforce","status":"deleted","failure_class":"none","reward":null,"calls":0`), ""},
		"late block":          {doc(graded, strings.Replace(strings.Replace(decoy, `"hits"`, `"tainted":true,"hits"`, 1), `"original":null`, `"original":`+shown, 1)), ""},
		"a reward of infra":   {doc(`"mode":"enforce","status":"failed","failure_class":"infra","reward":0,"calls":0`), "want null"},
		"no reward of model":  {doc(`"mode":"enforce","status":"failed","failure_class":"model","reward":null,"calls":0`), "reward is null"},
		"a reward over 1":     {doc(strings.Replace(graded, `"reward":1`, `"reward":2`, 1), ran), "0 to 1"},
		"a wrong count":       {doc(strings.Replace(graded, `"calls":1`, `"calls":3`, 1), ran), "rollout.calls is 3"},
		"a gap":               {doc(graded, strings.Replace(ran, `"ordinal":1`, `"ordinal":2`, 1)), "ordinal 2"},
		"no outcome":          {doc(strings.Replace(graded, `"calls":1`, `"calls":0`, 1), `{"ordinal":1,"principal":"agent","verdict":{"decision":"allow","action":"executed"}}`), "no outcome"},
		"both outcomes":       {doc(graded, strings.Replace(ran, `"ordinal"`, `"error":"e","ordinal"`, 1)), "and an error"},
		"the harness judged":  {doc(strings.Replace(graded, `"calls":1`, `"calls":0`, 1), strings.Replace(strings.Replace(ran, "agent", "harness", 1), `"allow"`, `"flag"`, 1)), "harness"},
		"a decoy in shadow":   {doc(strings.Replace(graded, "enforce", "shadow", 1), decoy), "in mode shadow"},
		"another observation": {doc(graded, strings.Replace(ran, `"output":"x"`, `"output":"y"`, 1)), "not what was shown"},
		"another decoy":       {doc(graded, strings.Replace(decoy, `"output":"x"`, `"output":"y"`, 1)), "does not show its decoy"},
		"no decoy":            {doc(graded, strings.Replace(decoy, `,"decoy":{"family":"f","sha256":"`+sumX+`"}`, "", 1)), "without a decoy"},
		"an executed decoy":   {doc(graded, strings.Replace(ran, `"hits"`, `"decoy":{"sha256":""},"hits"`, 1)), "has a decoy"},
		"a decoy that ran":    {doc(graded, strings.Replace(decoy, `"original":null`, `"original":`+shown, 1)), "has an original"},
		"an unknown action":   {doc(graded, strings.Replace(ran, "executed", "dreamt", 1)), "dreamt"},
		"no list of segments": {strings.Replace(doc(graded, ran), `"segments":[]`, `"segments":null`, 1), "segments"},
		"no id":               {strings.Replace(doc(graded, ran), `"id":"r"`, `"id":""`, 1), "rollout.id"},
		"replaced bytes":      {doc(graded, strings.Replace(decoy, `"output":"x"`, `"output":"\ufffd"`, 1)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := Check([]byte(c.doc))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(problems) > 0 {
					t.Errorf("problems %q, want none", problems)
				}
				return
			}
			if len(problems) != 1 || !strings.Contains(problems[0], c.want) {
				t.Errorf("problems %q, want one with %q", problems, c.want)
			}
		})
	}
}

func TestWhatIsNoTrajectory(t *testing.T) {
	for _, text := range []string{"", "[]", "{}", `{"schema":"proctor.trajectory/2"}`, `{"schema":"proctor.trajectory/1"}`, `{"schema":1}`} {
		if problems, err := Check([]byte(text)); err == nil {
			t.Errorf("%q is read, with problems %q", text, problems)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(doc(`"mode":"enforce","status":"graded","failure_class":"none","reward":1,"calls":1`, ran))
	f.Add(doc(`"status":"failed"`, decoy, "{}"))
	f.Fuzz(func(t *testing.T, text string) {
		problems, err := Check([]byte(text))
		if err != nil && len(problems) > 0 {
			t.Errorf("both problems and %v", err)
		}
	})
}
