package rollouts

import (
	"testing"
	"time"

	"proctor/sandbox"
)

// A clock that is set while no server runs neither ends a rollout early nor lets one live on, as long as the machine
// was not booted meanwhile.
func TestLifetimeOutlivesAClockThatIsSet(t *testing.T) {
	const life = 2 * time.Hour // the default
	for name, c := range map[string]struct {
		jump, passed time.Duration
		boot         string // of the second server
		over         bool
	}{
		"set forward":            {jump: 5 * time.Hour, passed: time.Minute, boot: "a"},
		"set back":               {jump: -5 * time.Hour, passed: life + time.Minute, boot: "a", over: true},
		"not set, and over":      {jump: life + time.Minute, passed: life + time.Minute, boot: "a", over: true},
		"not set, and not over":  {jump: time.Minute, passed: time.Minute, boot: "a"},
		"after a boot, over":     {jump: life + time.Minute, passed: time.Second, boot: "b", over: true},
		"after a boot, not over": {jump: time.Minute, passed: time.Second, boot: "b"},
		"where nothing is known": {jump: life + time.Minute, passed: time.Second, boot: "", over: true},
	} {
		now := uptime{"a", time.Hour}
		w := newWorld(t, func(w *world) { w.opt.uptime = func() uptime { return now } })
		id := w.create().ID
		w.clock.Add(c.jump)
		now = uptime{c.boot, time.Hour + c.passed}
		w.crash()
		w.m.Sweep()
		v := w.view(id)
		if over := v.Status == StatusFailed; over != c.over || over && v.FailureClass != sandbox.FailureModel {
			t.Errorf("%s: status %s, class %s, want it over: %v", name, v.Status, v.FailureClass, c.over)
		}
	}
}

func TestSinceBoot(t *testing.T) {
	a := sinceBoot()
	b := sinceBoot()
	if len(a.Boot) < 32 || a.Boot != b.Boot || a.At <= 0 || b.At < a.At {
		t.Errorf("%+v, then %+v", a, b)
	}
}
