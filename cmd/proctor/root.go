package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses of every subcommand.
const (
	exitDone   = 0 // done
	exitFailed = 1 // what was asked about failed: findings, failing validation, unresolved
	exitUsage  = 2 // usage or bad input
	exitInfra  = 3 // infrastructure: no daemon, no server, a full disk
)

// exitError carries the exit status that an error stands for. An empty message prints nothing.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// failed, usage and infra give err the exit status that its name says.
func failed(err error) error { return &exitError{exitFailed, err} }
func usage(err error) error  { return &exitError{exitUsage, err} }
func infra(err error) error  { return &exitError{exitInfra, err} }

// errSilent is for a command that has already printed what is wrong.
var errSilent = errors.New("")

// run executes the command line and gives the exit status.
func run(args []string) int {
	tuneCollector()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(os.Stderr, "proctor: "+msg)
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.status
	}
	return exitUsage
}

// collectorPercent is how far the heap grows over what lives before it is collected. A server, and
// what reads corpora, hold some tens of MiB that live for good (rule sets, statements, a model) and little else, so at
// Go's 100 they would collect every few dozen calls; at 400 a call over HTTP took 0.7 of the time, and a scan 0.85 of the
// processor time, for a few tens of MiB.
const collectorPercent = 400

// tuneCollector sets collectorPercent, unless GOGC says otherwise.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
}

// newRoot builds the command tree: one file per subcommand, each with a new<Name> function.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "proctor",
		Short:         "A sandboxed rollout environment for coding agents with online anti-cheat",
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: `Proctor runs coding agents in Docker sandboxes behind an HTTP tool endpoint, and answers
cheating calls with decoys instead of ending the rollout.

Exit status: 0 done, 1 what was asked about failed, 2 usage or bad input, 3 infrastructure.`,
	}
	root.AddCommand(newVersion(), newRules(), newEval())
	root.AddCommand(newDoctor(), newBench(), newServe(), newDemo(), newTasks(), newJudgeCommand(), newClassifier())
	root.AddCommand(newExport(), newCall(), newRollouts(), newVerdicts(), newConfig(), newGC(), newKeys())
	root.AddCommand(newScan(), newRun(), newGrade(), newReplay(), newReport())
	root.AddCommand(newCredit(), newCritic())
	return root
}
