package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// The chaos test injects faults under rollouts that work meanwhile, and proves by the record and by a file of
// marks in each sandbox that no call was lost and none ran twice, and that nothing is left on the machine afterwards.
//
// Which faults there are, in which order, and what each rollout does between them follows from the seed; how they
// fall together is the machine's doing. A jump of the clock is not among them: it would be one of the whole
// machine's. Within a server, times carry a reading of a clock that nobody can set; across servers lifetimes are measured by
// the boot's, which package rollouts tests with clocks of its own.

// chaosPlan is what a run of chaos does.
type chaosPlan struct {
	Seed     uint64 `json:"seed"`
	Faults   int    `json:"faults"`
	Rollouts int    `json:"rollouts"` // at once
	OutputMB int    `json:"output_mb"`
	Daemon   bool   `json:"daemon"` // a daemon of the test's own, which is restarted as well
}

// chaosReport is what it comes to.
type chaosReport struct {
	chaosPlan
	Injected   map[string]int `json:"injected"`
	Made       int            `json:"rollouts_made"`
	Calls      int            `json:"calls"`    // answered
	Repeated   int            `json:"repeated"` // requests that had to be made again
	Marks      int            `json:"marks"`    // lines found in sandboxes
	Deaths     map[string]int `json:"deaths"`   // by failure class
	PeakMiB    int            `json:"server_peak_mib"`
	TookS      float64        `json:"took_s"`
	Violations []string       `json:"violations"`
}

// number reads a setting.
func number(name string, standard int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return standard
}

// TestChaos runs 100 faults under 8 rollouts, to keep to CI's time; make chaos runs 1,000 under 32, with 1 GiB of output.
func TestChaos(t *testing.T) {
	needDocker(t)
	plan := chaosPlan{Seed: uint64(number("PROCTOR_CHAOS_SEED", 1)), Faults: number("PROCTOR_CHAOS", 100), Rollouts: number("PROCTOR_CHAOS_ROLLOUTS", 8),
		OutputMB: number("PROCTOR_CHAOS_OUTPUT_MB", 64), Daemon: os.Getenv("PROCTOR_CHAOS_DOCKERD") != ""}
	c := &chaos{t: t, plan: plan, report: chaosReport{chaosPlan: plan, Injected: map[string]int{}, Deaths: map[string]int{}, Violations: []string{}}, names: map[string]string{}}
	if plan.Daemon {
		c.daemon = startDaemon(t)
	}
	c.server = startServer(t, t.TempDir(), "--log-level", "error")
	began := time.Now()
	c.run()
	c.server.end()
	c.leftovers()
	c.report.TookS = time.Since(began).Round(time.Millisecond).Seconds()
	text, err := json.MarshalIndent(c.report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if path := os.Getenv("PROCTOR_CHAOS_JSON"); path != "" {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Error(err)
		}
	}
	for _, v := range c.report.Violations {
		t.Error(v)
	}
	if sum := c.injected(); sum != plan.Faults {
		t.Errorf("%d faults were injected, not %d", sum, plan.Faults)
	}
}

// chaos is a run. The server is replaced under the lock of hold, which its clients take for reading.
type chaos struct {
	t      *testing.T
	plan   chaosPlan
	server *child
	daemon *ownDaemon
	hold   sync.RWMutex

	mu     sync.Mutex
	report chaosReport
	names  map[string]string // rollout -> container, of all there ever were
	owner  string            // as labels have it
}

// kinds are the faults, each as often as its weight says.
func (c *chaos) kinds() []string {
	weights := map[string]int{"kill server": 12, "kill box": 8, "out of memory": 8, "fork bomb": 8, "full disk": 8, "large output": 6, "slow client": 12, "torn connection": 38}
	if c.plan.Daemon {
		weights["restart daemon"] = 2
	}
	var kinds []string
	for _, kind := range slices.Sorted(func(yield func(string) bool) {
		for kind := range weights {
			if !yield(kind) {
				return
			}
		}
	}) {
		kinds = append(kinds, slices.Repeat([]string{kind}, weights[kind])...)
	}
	return kinds
}

// run shares the faults out among the workers and waits for all.
func (c *chaos) run() {
	r, kinds := rand.New(rand.NewPCG(c.plan.Seed, 0)), c.kinds()
	list := make([]string, c.plan.Faults)
	for i := range list { // a whole number of rounds, each in an order of its own
		if i%len(kinds) == 0 {
			r.Shuffle(len(kinds), func(a, b int) { kinds[a], kinds[b] = kinds[b], kinds[a] })
		}
		list[i] = kinds[i%len(kinds)]
	}
	var wg sync.WaitGroup
	for i := range c.plan.Rollouts {
		wg.Go(func() {
			w := &worker{chaos: c, number: i, r: rand.New(rand.NewPCG(c.plan.Seed, uint64(i)+1))}
			for at := i; at < len(list); at += c.plan.Rollouts {
				w.step(list[at])
			}
			w.finish()
		})
	}
	wg.Wait()
}

func (c *chaos) injected() int {
	sum := 0
	for _, n := range c.report.Injected {
		sum += n
	}
	return sum
}

// count adds to the report.
func (c *chaos) count(f func(*chaosReport)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.report)
}

func (c *chaos) violation(format string, args ...any) {
	c.count(func(r *chaosReport) { r.Violations = append(r.Violations, fmt.Sprintf(format, args...)) })
}

// client is the present server's.
func (c *chaos) client() *client.Client {
	c.hold.RLock()
	defer c.hold.RUnlock()
	return c.server.client
}

// toldCall is what a rollout's client knows of a call.
type toldCall struct {
	command string
	seen    monitor.Observation
}

// worker is the client of one rollout after another. Not safe for concurrent use.
type worker struct {
	*chaos
	number int
	r      *rand.Rand

	made   *rollouts.Created // nil where there is none
	nth    int               // rollouts so far
	calls  map[string]toldCall
	next   int
	disk   int  // MiB of the present one
	killed bool // the box was, by us
	cruel  bool // the box was made to suffer from inside: its death is its own doing
}

// patience is how long a worker goes on asking: servers are killed every few seconds, and under many rollouts a create takes as long.
const patience = 15 * time.Minute

// smallDisk is the disk of a rollout, in MiB, but for those that are to print a lot: their outputs are spilled to it.
const smallDisk = 64

// step works a little, then has a fault injected.
func (w *worker) step(kind string) {
	if w.made != nil && w.r.IntN(12) == 0 {
		w.finish()
	}
	disk := smallDisk
	if kind == "large output" {
		disk += 2 * w.plan.OutputMB
	}
	if w.made != nil && w.disk < disk {
		w.finish()
	}
	for range 2 { // a neighbour may kill what all stand on, but nobody kills this worker's box
		if w.made == nil && !w.create(disk) {
			return
		}
		for range w.r.IntN(3) {
			w.work()
		}
	}
	if w.made == nil {
		w.violation("worker %d has no rollout for a fault", w.number)
		return
	}
	w.inject(kind)
	w.count(func(r *chaosReport) { r.Injected[kind]++ })
}

// work makes an ordinary call.
func (w *worker) work() {
	switch w.r.IntN(4) {
	case 0:
		w.call("sleep 0.2; echo slept", "slept\n")
	case 1:
		w.call("cd /tmp && x=$((x + 1)); echo done", "done\n")
	default:
		w.call("echo done", "done\n")
	}
}

// again asks until there is an answer, or none to be had.
func (w *worker) again(ask func(context.Context, *client.Client) error) error {
	deadline := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithTimeout(w.t.Context(), 60*time.Second)
		err := ask(ctx, w.client())
		cancel()
		var p *client.Problem
		if err == nil || errors.As(err, &p) && !p.Retry || time.Now().After(deadline) {
			return err
		}
		w.count(func(r *chaosReport) { r.Repeated++ })
		time.Sleep(50 * time.Millisecond)
	}
}

// create makes the worker's next rollout, once, whatever happens meanwhile.
func (w *worker) create(disk int) bool {
	w.nth++
	task := fmt.Sprintf(`{"id": "chaos", "instruction": "work", "image": %q, "workdir": "/tmp", "limits": {"memory_mb": 128, "pids": 128, "disk_mb": %d}}`, baseImage, disk)
	made, key := rollouts.Created{}, fmt.Sprintf("chaos-%d-%d", w.number, w.nth)
	err := w.again(func(ctx context.Context, c *client.Client) error {
		return c.Do(ctx, http.MethodPost, "/v1/rollouts", "", rollouts.CreateRequest{Mode: monitor.Enforce, Metadata: map[string]any{"key": key},
			Task: json.RawMessage(task)}, &made, "Idempotency-Key", key)
	})
	if err != nil {
		w.violation("create %s: %v", key, err)
		return false
	}
	w.made, w.calls, w.next, w.disk, w.killed, w.cruel = &made, map[string]toldCall{}, 0, disk, false, false
	id, owner, err := w.containerOf(made.ID)
	w.count(func(r *chaosReport) { r.Made++; w.names[made.ID], w.owner = id, owner })
	if err != nil {
		w.violation("rollout %s: its container: %v", made.ID, err)
	}
	return true
}

// marked gives the arguments of a call that leaves its key in the sandbox when it runs.
func marked(key, command string, timeout float64) map[string]any {
	return map[string]any{"command": "echo " + key + " >> /var/marks; " + command, "timeout_s": timeout}
}

// key names the next call.
func (w *worker) key() string {
	w.next++
	return fmt.Sprintf("k%d", w.next)
}

// call makes a call to its end; want is its output, "" for any.
func (w *worker) call(command, want string) { w.callAs(w.key(), command, want, 20) }

func (w *worker) callAs(key, command, want string, timeout float64) {
	if w.made == nil {
		return
	}
	made := *w.made
	var seen monitor.Observation
	err := w.again(func(ctx context.Context, c *client.Client) (err error) {
		seen, err = c.Call(ctx, made.ID, made.AgentToken, key, "bash", marked(key, command, timeout), "Idempotency-Key", key)
		return err
	})
	if err != nil {
		w.gone(fmt.Sprintf("call %s of %s", key, made.ID), err)
		return
	}
	w.count(func(r *chaosReport) { r.Calls++ })
	w.calls[key] = toldCall{command, seen}
	if want != "" && seen.Output != want {
		w.violation("call %s of %s, %q: output %.200q, want %q", key, made.ID, command, seen.Output, want)
	}
}
