package pool

import (
	"testing"
	"time"
)

// at gives a time so many seconds after the start of a test.
func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestDemandTarget(t *testing.T) {
	group := func(n int, start float64) []float64 {
		var all []float64
		for i := range n {
			all = append(all, start+float64(i)*0.01)
		}
		return all
	}
	var steady []float64
	for i := range 300 {
		steady = append(steady, float64(i)*0.1)
	}
	for _, row := range []struct {
		name   string
		claims []float64
		took   time.Duration
		ask    float64
		lo, hi int
	}{
		{"nothing", nil, 0, 0, 0, 0},
		{"one claim is no demand", []float64{0}, time.Second, 1, 0, 0},
		{"one group is no demand", group(8, 0), time.Second, 1, 0, 0},
		{"a second group asks for its like", append(group(8, 0), group(1, 60)...), time.Second, 60, 8, 8},
		{"a smaller second group halves the way", append(append(group(8, 0), group(2, 60)...), 120), time.Second, 120, 5, 5},
		{"a quarter of the idle time halves it", append(group(8, 0), group(1, 60)...), time.Second, 210, 4, 4},
		{"three quarters leave an eighth", append(group(8, 0), group(1, 60)...), time.Second, 509, 1, 1},
		{"the idle time leaves nothing", append(group(8, 0), group(1, 60)...), time.Second, 661, 0, 0},
		{"demand that died counts no more", append(group(8, 0), 700), time.Second, 700, 0, 0},
		{"a stream of 10 a second, of which each takes half a second", steady, 500 * time.Millisecond, 30, 6, 30},
	} {
		d := demand{idle: 10 * time.Minute, took: row.took}
		for _, c := range row.claims {
			d.claim(at(c))
		}
		if got := d.target(at(row.ask)); got < row.lo || got > row.hi {
			t.Errorf("%s: %d, want %d to %d (%+v)", row.name, got, row.lo, row.hi, d)
		}
	}
}

func TestDemandAnnounced(t *testing.T) {
	d := demand{idle: time.Minute}
	d.announce(3, at(0))
	if got := d.target(at(1)); got != 3 {
		t.Errorf("announced 3, target %d", got)
	}
	d.claim(at(2))
	if got := d.target(at(2)); got != 2 {
		t.Errorf("one claimed: target %d", got)
	}
	if got := d.target(at(61)); got != 0 || d.over(at(61)) || !d.over(at(63)) {
		t.Errorf("after the idle time: target %d, over %v %v", got, d.over(at(61)), d.over(at(63)))
	}
}

// Whatever the claims, the target is never negative nor more than all claims, and without claims it only
// falls.
func FuzzDemand(f *testing.F) {
	f.Add([]byte{0, 1, 1, 200, 0, 0}, uint16(500))
	f.Fuzz(func(t *testing.T, gaps []byte, tookMS uint16) {
		d := demand{idle: time.Minute, took: time.Duration(tookMS) * time.Millisecond}
		now, announced := 0.0, 0
		for i, gap := range gaps {
			now += float64(gap) / 16
			if gap%31 == 7 {
				announced = max(announced, i)
				d.announce(i, at(now))
				continue
			}
			d.claim(at(now))
			streaming := 2 * float64(len(gaps)) * d.took.Seconds() / rateMemory.Seconds()
			if got := d.target(at(now)); got < 0 || float64(got) > max(float64(len(gaps)), streaming)+1 {
				t.Fatalf("target %d after %d claims", got, len(gaps))
			}
		}
		before := d.target(at(now))
		for s := now; s < now+70; s++ {
			got := d.target(at(s))
			if got > before || (s > now+61 && got != 0) {
				t.Fatalf("target %d at %v s, %d before", got, s-now, before)
			}
			before = got
		}
	})
}
