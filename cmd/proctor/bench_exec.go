package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/spf13/cobra"

	"proctor/sandbox"
	"proctor/sandbox/docker"
)

// execReport is what `bench exec --json` prints. Times are medians in milliseconds.
type execReport struct {
	N          int                `json:"n"`
	Bash       float64            `json:"bash_ms"`             // `bash -c true` on the host
	DockerExec float64            `json:"docker_exec_ms"`      // the same by the daemon's exec endpoint
	Oneshot    float64            `json:"oneshot_ms"`          // the same by the box agent
	Shell      float64            `json:"shell_ms"`            // `true` typed into the persistent shell
	HTTP       float64            `json:"http_ms"`             // the same over HTTP, through gate and record
	HTTPBash   float64            `json:"http_bash_ms"`        // `bash -c true` typed into the shell, over HTTP
	SWEReX     map[string]float64 `json:"swerex_ms,omitempty"` // by probe: session, http_session (a builtin), http_execute (bash -c true)
	Ratios     map[string]float64 `json:"ratios"`
	Parallel   parallelReport     `json:"parallel"`
}

// parallelReport compares commands in many sandboxes at once with as many on the host.
type parallelReport struct {
	Rollouts  int     `json:"rollouts"`
	Calls     float64 `json:"calls_per_s"` // one-shot, by the box agents
	Bash      float64 `json:"bash_per_s"`  // on the host
	Ratio     float64 `json:"ratio"`
	HTTPCalls float64 `json:"http_calls_per_s"` // `bash -c true` typed into as many rollouts' shells, over HTTP
	HTTPRatio float64 `json:"http_ratio"`
}

// execBench is what the benchmark is asked for.
type execBench struct {
	n, rollouts int
	span        time.Duration // of each side of the parallel part
	image       string
	boxd        string
	swerex      string // a Python that has swe-rex; "" to leave that peer out
	progress    io.Writer
}

// newBenchExec measures what a call costs.
func newBenchExec() *cobra.Command {
	b := execBench{progress: os.Stderr}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "exec",
		Short: "Measure what a call costs, against a bare bash -c true and docker exec",
		Long: `Times, interleaved in one run: bash -c true on the host, by docker exec, by the box agent one-shot, a builtin
in the persistent shell, and both over HTTP through a server of its own; then commands in many sandboxes at once,
one-shot and over HTTP, against as many on the host. --swerex adds SWE-ReX on the host as a peer.`,
		Example: "  proctor bench exec\n  proctor bench exec --json --n 50 --rollouts 8\n  proctor bench exec --swerex venv/bin/python   # that has swe-rex and aiohttp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.n < 1 || b.rollouts < 0 || b.span <= 0 {
				return usage(errors.New("bench exec: --n is at least 1, --rollouts at least 0, --span more than 0"))
			}
			if !terminal(os.Stderr) {
				b.progress = io.Discard
			}
			got, err := b.run(cmd.Context())
			if err != nil {
				return infra(fmt.Errorf("bench exec: %w", err))
			}
			return got.print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().IntVar(&b.n, "n", 200, "rounds")
	cmd.Flags().IntVar(&b.rollouts, "rollouts", 64, "sandboxes of the parallel part; 0 leaves it out")
	cmd.Flags().DurationVar(&b.span, "span", 3*time.Second, "how long each side of the parallel part runs")
	cmd.Flags().StringVar(&b.image, "image", baseImage, "image of the sandboxes; it needs bash")
	cmd.Flags().StringVar(&b.boxd, "boxd", os.Getenv("PROCTOR_BOXD"), "the box agent (default boxd beside this program)")
	cmd.Flags().StringVar(&b.swerex, "swerex", "", "a `PYTHON` that has swe-rex and aiohttp: times its sessions too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// terminal reports whether f is one.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run makes the sandboxes and the server, measures, and removes them.
func (b *execBench) run(ctx context.Context) (_ execReport, err error) {
	engine, err := docker.New(docker.Options{Owner: fmt.Sprintf("bench-%d", os.Getpid()), BoxPath: b.boxd})
	if err != nil {
		return execReport{}, err
	}
	defer engine.Close()
	fmt.Fprintln(b.progress, "starting a sandbox and a server")
	box, err := engine.Create(ctx, sandbox.Spec{Name: "bench", Image: b.image})
	if err != nil {
		return execReport{}, err
	}
	defer func() { err = errors.Join(err, box.Close(context.WithoutCancel(ctx))) }()
	server, err := startBenchServer(ctx, b.image, b.boxd)
	if err != nil {
		return execReport{}, err
	}
	defer func() { err = errors.Join(err, server.stop(context.WithoutCancel(ctx))) }()

	fmt.Fprintf(b.progress, "timing %d rounds\n", b.n)
	report, err := b.single(ctx, box, server)
	if err != nil || b.rollouts == 0 {
		return report, err
	}
	report.Parallel, err = b.parallel(ctx, engine, server)
	return report, err
}

// single times one call after the other.
func (b *execBench) single(ctx context.Context, box sandbox.Session, server *benchServer) (execReport, error) {
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return execReport{}, err
	}
	defer cli.Close()
	probes := []probe{
		{"bash", func(ctx context.Context, _ int) error { return bareBash(ctx) }},
		{"docker_exec", func(ctx context.Context, _ int) error { return dockerExec(ctx, cli, box.ID()) }},
		{"oneshot", func(ctx context.Context, _ int) error { return oneshot(ctx, box) }},
		{"shell", func(ctx context.Context, round int) error {
			got, err := box.Do(ctx, sandbox.Call{ID: fmt.Sprintf("s%d", round), Op: sandbox.OpShell, Command: "true"})
			return ended(got.Exit, err)
		}},
		{"http", func(ctx context.Context, _ int) error { return server.bash(ctx, "true") }},
		{"http_bash", func(ctx context.Context, _ int) error { return server.bash(ctx, "bash -c true") }},
	}
	if b.swerex != "" {
		peer, err := startSWEReX(ctx, b.swerex)
		if err != nil {
			return execReport{}, err
		}
		defer peer.stop()
		probes = append(probes, peer.probes()...)
	}
	medians, err := interleave(ctx, b.n, probes)
	if err != nil {
		return execReport{}, err
	}
	r := execReport{N: b.n, Bash: ms(medians["bash"]), DockerExec: ms(medians["docker_exec"]), Oneshot: ms(medians["oneshot"]),
		Shell: ms(medians["shell"]), HTTP: ms(medians["http"]), HTTPBash: ms(medians["http_bash"])}
	r.Ratios = map[string]float64{
		"oneshot_vs_bash":     ratio(r.Oneshot, r.Bash),
		"shell_vs_bash":       ratio(r.Shell, r.Bash),
		"http_vs_bash":        ratio(r.HTTP, r.Bash),
		"http_bash_vs_bash":   ratio(r.HTTPBash, r.Bash),
		"http_vs_docker_exec": ratio(r.DockerExec, r.HTTP), // how many times faster
	}
	if b.swerex != "" {
		r.SWEReX = map[string]float64{}
		for _, known := range swerexProbes {
			r.SWEReX[known.name] = ms(medians["swerex_"+known.name])
		}
		r.Ratios["http_vs_swerex"] = ratio(r.SWEReX["http_session"], r.HTTP) // how many times faster
	}
	return r, nil
}

// bareBash runs `bash -c true` on the host.
func bareBash(ctx context.Context) error { return exec.CommandContext(ctx, "bash", "-c", "true").Run() }

// oneshot runs it by the box agent.
func oneshot(ctx context.Context, box sandbox.Session) error {
	got, err := box.Exec(ctx, sandbox.Exec{Argv: []string{"bash", "-c", "true"}})
	return ended(got.Exit, err)
}

// ended makes an error of a command that did not end with 0.
func ended(exit *int, err error) error {
	if err == nil && (exit == nil || *exit != 0) {
		return errors.New("the command did not end with 0")
	}
	return err
}

// dockerExec runs it by the daemon's exec endpoints, as docker-py and the CLI do.
func dockerExec(ctx context.Context, cli *client.Client, id string) error {
	made, err := cli.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: []string{"bash", "-c", "true"}, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	stream, err := cli.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer stream.Close()
	if _, err := io.Copy(io.Discard, stream.Reader); err != nil {
		return err
	}
	state, err := cli.ContainerExecInspect(ctx, made.ID)
	return ended(&state.ExitCode, err)
}

// print writes the report for people, or as JSON.
func (r execReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	rows := []struct {
		what string
		ms   float64
	}{
		{"bash -c true on the host", r.Bash}, {"docker exec", r.DockerExec}, {"one-shot by the box agent", r.Oneshot},
		{"a builtin in the persistent shell", r.Shell}, {"a builtin over HTTP", r.HTTP}, {"bash -c true over HTTP", r.HTTPBash},
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "%-36s %8.3f ms  %7.2f x bare\n", row.what, row.ms, ratio(row.ms, r.Bash)); err != nil {
			return err
		}
	}
	for _, known := range swerexProbes {
		if v := r.SWEReX[known.name]; v > 0 {
			fmt.Fprintf(w, "%-36s %8.3f ms  %7.2f x bare\n", known.what, v, ratio(v, r.Bash))
		}
	}
	fmt.Fprintf(w, "%-36s %8.1f times faster than docker exec\n", "a builtin over HTTP", r.Ratios["http_vs_docker_exec"])
	if v := r.Ratios["http_vs_swerex"]; v > 0 {
		fmt.Fprintf(w, "%-36s %8.1f times faster than SWE-ReX's session over HTTP\n", "a builtin over HTTP", v)
	}
	if r.Parallel.Rollouts == 0 {
		return nil
	}
	fmt.Fprintf(w, "%-36s %8.0f a second, bare %.0f: %.2f\n", fmt.Sprintf("one-shot in %d sandboxes at once", r.Parallel.Rollouts),
		r.Parallel.Calls, r.Parallel.Bash, r.Parallel.Ratio)
	_, err := fmt.Fprintf(w, "%-36s %8.0f a second, bare %.0f: %.2f\n", fmt.Sprintf("over HTTP in %d rollouts at once", r.Parallel.Rollouts),
		r.Parallel.HTTPCalls, r.Parallel.Bash, r.Parallel.HTTPRatio)
	return err
}
