package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/sandbox"
)

// baseImage is what the demo, the bench and the tests make their sandboxes from.
const baseImage = "proctor/base:dev"

// check is one line of doctor's report.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
	infra  bool   // what fails here is the machine's, not the question's: exit status 3
}

// examination is what `doctor --json` prints.
type examination struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
}

// newDoctor says what this machine can run.
func newDoctor() *cobra.Command {
	var file, data, image string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can run, with a remedy on every line that fails",
		Long: `Checks the engine that the settings name and the other one, the base image, the box agent, the data folder, the witness and the judge.

Exit status: 0 all is well, 1 something is missing, 2 a bad setting, 3 no Docker daemon answers.`,
		Example: "  proctor doctor\n  proctor doctor --json | jq -r '.checks[] | select(.ok | not) | .remedy'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.Load(file, os.Getenv)
			if err != nil {
				return usage(err)
			}
			if data != "" {
				settings.Data = data
			}
			if err := settings.Check(); err != nil {
				return usage(err)
			}
			found := examine(cmd.Context(), settings, image)
			if err := found.print(cmd.OutOrStdout(), asJSON); err != nil {
				return infra(err)
			}
			return found.verdict()
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file with settings")
	cmd.Flags().StringVar(&data, "data", "", "data folder to look at (default the configured one)")
	cmd.Flags().StringVar(&image, "image", baseImage, "image to look for")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// examine runs every check.
func examine(ctx context.Context, settings config.Config, image string) examination {
	log := slog.New(slog.DiscardHandler)
	engine, err := openEngine(settings, "doctor", true, log)
	var all []check
	if err != nil {
		all = append(all, check{Name: "engine/" + settings.Engine, Detail: err.Error(), Remedy: "set DOCKER_HOST to a unix:// address, or unset it", infra: true})
	} else {
		defer engine.Close()
		all = append(all, checkEngine(ctx, engine), checkImage(ctx, engine, image))
	}
	all = append(all, checkOther(ctx, settings, log))
	all = append(all, checkBoxd(settings.Boxd), checkStore(settings.Data))
	all = append(all, checkWitness(ctx, engine, image, all), checkJudge(ctx, settings.Judge), checkPython(ctx, settings, log), checkNPM(ctx, settings, log),
		checkRuntime("runc"), checkRuntime("runsc"))
	r := examination{OK: true, Checks: all}
	for _, c := range all {
		r.OK = r.OK && c.OK
	}
	return r
}

// checkEngine asks the daemon what it holds.
func checkEngine(ctx context.Context, engine sandbox.Engine) check {
	c := check{Name: "engine/" + engine.Name(), infra: true}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	caps, err := engine.Capabilities(ctx)
	if err != nil {
		c.Detail, c.Remedy = err.Error(), remedies[engine.Name()]
		return c
	}
	c.OK, c.Detail = caps.Seccomp, "version "+caps.Version
	if caps.Unprovable != "" {
		c.Detail += "; " + caps.Unprovable
	}
	if !caps.Seccomp {
		c.Remedy = "use a kernel and a daemon with seccomp: sandboxes are not confined without it"
	}
	return c
}

// remedies are what to do about an engine that cannot run here.
var remedies = map[string]string{
	"docker": "start a Docker daemon: make docker",
	"oci":    "run as root, install runc (apt-get install runc), and set oci.store to a folder on ext4, xfs or btrfs",
}

// checkOther tells whether the engine that the settings do not name could be used. It need not: it is for information.
func checkOther(ctx context.Context, settings config.Config, log *slog.Logger) check {
	settings.Engine = map[string]string{"docker": "oci", "oci": "docker"}[settings.Engine]
	engine, err := openEngine(settings, "doctor", true, log)
	if err != nil {
		return check{Name: "engine/" + settings.Engine, OK: true, Detail: "not usable (optional): " + err.Error(), Remedy: remedies[settings.Engine]}
	}
	defer engine.Close()
	c := checkEngine(ctx, engine)
	if !c.OK {
		c.OK, c.infra, c.Detail = true, false, "not usable (optional): "+c.Detail
	}
	return c
}

// checkImage looks for the base image.
func checkImage(ctx context.Context, engine sandbox.Engine, ref string) check {
	c := check{Name: "image"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // the oci engine unpacks it, once
	defer cancel()
	image, err := engine.Image(ctx, ref)
	switch {
	case errors.Is(err, sandbox.ErrNoImage):
		c.Detail, c.Remedy = ref+" is not there", "build it: make image"
	case err != nil:
		c.Detail, c.Remedy = err.Error(), remedies[engine.Name()]
	default:
		c.OK, c.Detail = true, fmt.Sprintf("%s, %d MB", ref, image.Size/1e6)
	}
	return c
}

// checkBoxd looks for the box agent.
func checkBoxd(path string) check {
	c := check{Name: "boxd"}
	if path == "" {
		if self, err := os.Executable(); err == nil {
			path = filepath.Join(filepath.Dir(self), "boxd")
		}
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		c.Detail, c.Remedy = "no box agent at "+path, "build it: make build; or set PROCTOR_BOXD"
		return c
	}
	c.OK, c.Detail = true, path
	return c
}

// checkStore makes sure that the data folder can be written to. It leaves no folder behind that was not there.
func checkStore(data string) check {
	c := check{Name: "store", Remedy: "choose another folder with --data or PROCTOR_DATA, or give this one to your user"}
	there := data
	for {
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			c.Detail = there + " is no folder"
			return c
		}
		if err == nil || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	probe, err := os.CreateTemp(there, ".doctor")
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	defer os.Remove(probe.Name())
	// A full disk refuses bytes, not names.
	_, err = probe.Write(make([]byte, 1<<20))
	if err = errors.Join(err, probe.Sync(), probe.Close()); err != nil {
		c.Detail = err.Error()
		return c
	}
	c.OK, c.Remedy, c.Detail = true, "", data+" is writable"
	if there != data {
		c.Detail = data + " can be made"
	}
	return c
}

// checkJudge makes sure that the judge's endpoint answers, where one is set.
func checkJudge(ctx context.Context, judge config.Judge) check {
	c := check{Name: "judge"}
	if judge.URL == "" {
		c.OK, c.Detail = true, "no endpoint is set: the built-in heuristic judges (--judge-url for a model)"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url := strings.TrimSuffix(judge.URL, "/") + "/models"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		c.Detail, c.Remedy = err.Error(), "set judge.url to an http:// or https:// address"
		return c
	}
	if judge.APIKey != "" {
		request.Header.Set("Authorization", "Bearer "+judge.APIKey)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Detail, c.Remedy = err.Error(), "start the judge's server, or correct judge.url"
		return c
	}
	answer.Body.Close()
	c.Detail = fmt.Sprintf("%s answers %s", judge.URL, answer.Status)
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		c.Remedy = "set PROCTOR_JUDGE_API_KEY"
	default:
		if c.OK = answer.StatusCode < 500; !c.OK {
			c.Remedy = "look at the judge's server"
		}
	}
	return c
}

// checkRuntime tells whether an OCI runtime is installed. None is needed: it is for information.
func checkRuntime(name string) check {
	c := check{Name: "runtime/" + name, OK: true, Detail: "not installed (optional)"}
	if path, err := exec.LookPath(name); err == nil {
		c.Detail = path
	} else if runtime.GOOS != "linux" {
		c.Detail = "not on " + runtime.GOOS
	}
	return c
}

// print writes the report for people, or as JSON.
func (r examination) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	for _, c := range r.Checks {
		mark := "ok  "
		if !c.OK {
			mark = "FAIL"
		}
		line := fmt.Sprintf("%s  %-14s %s\n", mark, c.Name, c.Detail)
		if c.Remedy != "" {
			line += fmt.Sprintf("      %-14s -> %s\n", "", c.Remedy)
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// verdict is the error that gives the report's exit status.
func (r examination) verdict() error {
	for _, c := range r.Checks {
		if !c.OK && c.infra {
			return infra(errSilent)
		}
	}
	if !r.OK {
		return failed(errSilent)
	}
	return nil
}
