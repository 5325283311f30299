package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	all := []time.Duration{4, 1, 3, 2}
	for q, want := range map[float64]time.Duration{0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.99: 4, 1: 4} {
		if got := quantile(all, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 || round2(-1.26) != -1.26 || round2(1.004) != 1 || mib(3<<19) != 1.5 {
		t.Error("of none, and rounded")
	}
}

func TestFieldKiB(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(path, []byte("Name:\tx\nVmRSS:\t   1234 kB\nPPid:\t7\nVmRSSX: 1 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fieldKiB(path, "VmRSS") != 1234 || fieldKiB(path, "PPid") != 7 || fieldKiB(path, "none") != 0 || fieldKiB(path+"x", "VmRSS") != 0 {
		t.Error("fields of the kernel's files")
	}
	if procKiB(os.Getpid(), "VmRSS") == 0 || memAvailable() == 0 || pss(os.Getpid()) == 0 {
		t.Error("this process holds memory")
	}
}

// The keys of what benchmarks print are relied on.
func TestReportKeys(t *testing.T) {
	keys := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Sorted(maps.Keys(got)), " ")
	}
	for want, v := range map[string]any{
		"docker_run_ms engines n ratios runc_run_ms skipped":                                                        startReport{},
		"close_ms commit_ms fork_ms start_ms":                                                                       engineStart{},
		"claim_max_ms claim_p50_ms claim_p99_ms claim_vs_start engine first_call_p50_ms n start_p50_ms":             poolReport{},
		"engine host_mib_per_sandbox levels n oneshot_last_vs_first output pss_mib_per_sandbox start_last_vs_first": scaleReport{},
	} {
		if got := keys(v); got != want {
			t.Errorf("%T: %s, want %s", v, got, want)
		}
	}
}

func TestStartRatios(t *testing.T) {
	r := startReport{Engines: map[string]engineStart{}, Ratios: map[string]float64{}}
	many := func(v time.Duration) []lap { return []lap{{start: v}, {start: v}, {start: 9 * v}} }
	half := lap{start: 60 * time.Millisecond, closed: 10 * time.Millisecond, fork: 90 * time.Millisecond, commit: 20 * time.Millisecond}
	r.fill(map[string][]lap{"docker_run": many(400 * time.Millisecond), "runc_run": many(50 * time.Millisecond), "oci": {half, half}})
	want := map[string]float64{"oci_vs_docker_run": 0.15, "oci_vs_runc_run": 1.2}
	if !maps.Equal(r.Ratios, want) || r.DockerRun != 400 || r.Engines["oci"] != (engineStart{60, 10, 90, 20}) {
		t.Errorf("%+v", r)
	}
	var text strings.Builder
	r.Skipped = map[string]string{"docker": "no daemon"}
	if err := r.print(&text); err != nil || !strings.Contains(text.String(), "docker was left out: no daemon") || !strings.Contains(text.String(), "oci engine, until ready") {
		t.Errorf("%v %s", err, &text)
	}
}

func TestFiguresInAPage(t *testing.T) {
	texts := []string{
		`{"n": 1, "bash_ms": 2, "ratios": {"oneshot_vs_bash": 1.05, "http_vs_swerex": 90}, "parallel": {"rollouts": 64, "ratio": 0.95}}`,
		`{"docker_run_ms": 400, "runc_run_ms": 50, "engines": {"oci": {"start_ms": 60}}, "ratios": {"oci_vs_runc_run": 1.2}}`,
		`{"claim_p50_ms": 0.4, "claim_p99_ms": 5, "engine": "oci", "claim_vs_start": 0.01}`,
		`{"n": 40, "engine": "oci", "levels": [], "host_mib_per_sandbox": 2.5, "output": {"gib": 1, "commands": 4, "server_rss_mib": 100, "server_peak_mib": 101}}`,
		`{"rules": 500, "p50_us": 21, "p99_us": 640}`,
	}
	var rows []figure
	for _, text := range texts {
		more, err := figuresOf([]byte(text))
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v", text, err)
		}
		rows = append(rows, more...)
	}
	table := figureTable(rows)
	for _, want := range []string{"| 1.05 x | at most 1.1 x |", "| 90.00 x | at least 80 x |", "| 95 % | at least 93 % |", "| 8.00 x |", "| 1.20 x | at most 1.5 x |",
		"| 0.4 and 5.0 ms | under 10 ms |", "| 100 and 101 MiB | flat |", "| 21 and 640 µs |"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	page := "a\n" + figuresBegin + "\nold\n" + figuresEnd + "\nb\n"
	once, err := between(page, table)
	twice, again := between(once, table)
	if err != nil || again != nil || once != twice || strings.Contains(once, "old") || !strings.HasPrefix(once, "a\n") || !strings.HasSuffix(once, "\nb\n") {
		t.Errorf("%v %v %q", err, again, once)
	}
	if _, err := between("no marks", table); err == nil {
		t.Error("a page without marks")
	}
	for _, bad := range []string{"[]", "{}", "{", `{"bash_ms": "x"}`} {
		if _, err := figuresOf([]byte(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := between(string(text), table); err != nil {
		t.Errorf("docs/performance.md: %v", err)
	}
}
