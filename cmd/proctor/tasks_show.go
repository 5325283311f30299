package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/sandbox"
	"proctor/tasks"
)

// taskShown is what `tasks show --json` prints.
type taskShown struct {
	Task     *tasks.Task         `json:"task"`
	Folder   string              `json:"folder"`
	Digest   string              `json:"digest"`
	Vars     map[string][]string `json:"vars"`
	Prepared *preparedShown      `json:"prepared"` // null without --prepare
}

// preparedShown is what preparing a task came to.
type preparedShown struct {
	Image    string       `json:"image"`
	Digest   string       `json:"digest"`
	Raw      string       `json:"raw"`
	Hardened bool         `json:"hardened"`
	Base     string       `json:"base"`
	Leaks    []tasks.Leak `json:"leaks"`
}

// newTasksShow shows one task.
func newTasksShow() *cobra.Command {
	var flags taskFlags
	var id string
	var asJSON, prepare, raw bool
	cmd := &cobra.Command{
		Use:   "show PATH",
		Short: "Show a task, its rule variables and, when prepared, what leaked in its image",
		Long: `Shows a task as it was read, its digest, and the variables that rules see. With --prepare its image is made
and hardened, or taken from the cache, and what leaked before is listed; with --raw it is not hardened.

Exit status: 0 done, 1 the task cannot be prepared, 2 its file is wrong, 3 the machine failed.`,
		Example: "  proctor tasks show testdata/tasks/interval-merge\n  proctor tasks show --prepare --json tasks/one | jq '.prepared.leaks'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := flags.settings()
			if err != nil {
				return err
			}
			loaded, problems := flags.load(cmd.Context(), settings, args)
			task, err := oneTask(cmd.ErrOrStderr(), args[0], id, loaded, problems)
			if err != nil {
				return err
			}
			digest, err := task.Digest()
			if err != nil {
				return usage(err)
			}
			shown := taskShown{Task: task, Folder: task.Dir, Digest: digest, Vars: task.RuleVars()}
			if prepare || raw {
				if shown.Prepared, err = prepareOne(cmd.Context(), settings, task, !raw); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), shown)
			}
			return printTask(cmd.OutOrStdout(), shown)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&id, "id", "", "the task of a set that is meant")
	cmd.Flags().BoolVar(&prepare, "prepare", false, "prepare the image and list what leaked")
	cmd.Flags().BoolVar(&raw, "raw", false, "prepare the image without hardening it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// oneTask picks the only task of a path, or the one of that id. What is wrong with others is told only
// where it could be the one that is meant.
func oneTask(stderr io.Writer, path, id string, loaded []*tasks.Task, problems []tasks.Problem) (*tasks.Task, error) {
	ids := make([]string, len(loaded))
	for i, t := range loaded {
		if t.ID == id {
			return t, nil
		}
		ids[i] = t.ID
	}
	if err := problemsError(stderr, problems); err != nil {
		return nil, err
	}
	if id != "" || len(loaded) != 1 {
		return nil, usage(fmt.Errorf("%s holds %s; name one of their folders, or one with --id: %s", path, plural(len(loaded), "task"), strings.Join(ids, ", ")))
	}
	return loaded[0], nil
}

func prepareOne(ctx context.Context, settings config.Config, task *tasks.Task, hardening bool) (*preparedShown, error) {
	engine, err := openEngine(settings, fmt.Sprintf("show-%d", os.Getpid()), false, nil)
	if err != nil {
		return nil, infra(err)
	}
	defer func() { _ = engine.Close() }()
	preparer, err := newPreparer(engine, settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	p, err := preparer.Prepare(ctx, task, hardening)
	if err != nil {
		return nil, prepareStatus(err)
	}
	return &preparedShown{Image: p.Image.Ref, Digest: p.Image.Digest, Raw: p.Raw.Ref, Hardened: p.Hardened, Base: p.Base, Leaks: append([]tasks.Leak{}, p.Leaks...)}, nil
}

// prepareStatus tells the machine's failures from the task's.
func prepareStatus(err error) error {
	for _, ours := range []error{sandbox.ErrUnavailable, sandbox.ErrCapacity, os.ErrPermission} {
		if errors.Is(err, ours) {
			return infra(err)
		}
	}
	return failed(err)
}

func printTask(w io.Writer, s taskShown) error {
	var b strings.Builder
	fmt.Fprintf(&b, "task      %s\nfolder    %s\ndigest    %s\n", s.Task.ID, s.Folder, s.Digest)
	names := make([]string, 0, len(s.Vars))
	for name := range s.Vars {
		names = append(names, name)
	}
	sort.Strings(names)
	b.WriteString("variables\n")
	for _, name := range names {
		if name != "instruction" {
			fmt.Fprintf(&b, "  %-15s %s\n", name, strings.Join(s.Vars[name], " "))
		}
	}
	if p := s.Prepared; p != nil {
		fmt.Fprintf(&b, "image     %s\nraw       %s\nhardened  %t\nbase      %s\nleaks     %d\n", p.Image, p.Raw, p.Hardened, p.Base, len(p.Leaks))
		for _, leak := range p.Leaks {
			fmt.Fprintf(&b, "  %-10s %s\n", leak.Kind, leak)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(s.Task.Instruction))
	_, err := io.WriteString(w, b.String())
	return err
}
