package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, row := range []struct {
		all  []time.Duration
		want time.Duration
	}{{nil, 0}, {[]time.Duration{7}, 7}, {[]time.Duration{9, 1, 4}, 4}, {[]time.Duration{8, 2, 4, 6}, 5}} {
		if got := median(row.all); got != row.want {
			t.Errorf("%v: %v, want %v", row.all, got, row.want)
		}
	}
	if ratio(1, 0) != 0 || ratio(2, 3) != 0.667 || ms(1234567) != 1.234 {
		t.Errorf("%v %v %v", ratio(1, 0), ratio(2, 3), ms(1234567))
	}
}

func TestInterleaveTakesTurnsInBursts(t *testing.T) {
	var order strings.Builder
	note := func(letter string) func(context.Context, int) error {
		return func(context.Context, int) error { order.WriteString(letter); return nil }
	}
	got, err := interleave(context.Background(), 12, []probe{{"a", note("a")}, {"b", note("b")}})
	full := strings.Repeat("a", burst) + strings.Repeat("b", burst)
	if err != nil || order.String() != full+full+"aabb" || len(got) != 2 {
		t.Errorf("%v %v, order %s", got, err, order.String())
	}
	broken := errors.New("broken")
	_, err = interleave(context.Background(), 1, []probe{{"a", func(context.Context, int) error { return broken }}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "a, round 0") {
		t.Errorf("%v", err)
	}
}

func TestPerSecond(t *testing.T) {
	rate, err := perSecond(context.Background(), 4, 50*time.Millisecond, func(context.Context, int) error { time.Sleep(time.Millisecond); return nil })
	if err != nil || rate < 100 || rate > 4500 {
		t.Errorf("%v %v", rate, err)
	}
	broken := errors.New("broken")
	if _, err := perSecond(context.Background(), 2, time.Minute, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestExecReportKeys(t *testing.T) {
	var text strings.Builder
	r := execReport{N: 1, Bash: 1, Ratios: map[string]float64{"http_vs_docker_exec": 40}, Parallel: parallelReport{Rollouts: 2}}
	if err := r.print(&text, true); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("bash_ms docker_exec_ms http_bash_ms http_ms n oneshot_ms parallel ratios shell_ms")
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Errorf("keys %v", keys)
	}
	inner := slices.Sorted(maps.Keys(got["parallel"].(map[string]any)))
	if !slices.Equal(inner, []string{"bash_per_s", "calls_per_s", "http_calls_per_s", "http_ratio", "ratio", "rollouts"}) {
		t.Errorf("parallel keys %v", inner)
	}
	text.Reset()
	if err := r.print(&text, false); err != nil || !strings.Contains(text.String(), "one-shot in 2 sandboxes") {
		t.Error(text.String(), err)
	}
}
