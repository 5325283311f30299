package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"proctor/internal/config"
	"proctor/tasks"
	"proctor/tasks/sets"
)

// taskFlags are the flags of every command that reads task sets.
type taskFlags struct {
	file, data, source string
}

func (f *taskFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "config", "", "YAML file with settings")
	flags.StringVar(&f.data, "data", "", "data folder that keeps tasks made of rows, and prepared images' state (default the configured one)")
	flags.StringVar(&f.source, "source", "", "the set that the rows are of (default: told by their fields): swe-bench, swe-bench-pro, swe-rebench, swe-smith, swe-gym, r2e-gym, multi-swe, harbor, terminal-bench")
}

// settings gives the configuration with the flags over it.
func (f *taskFlags) settings() (config.Config, error) {
	settings, err := config.Load(f.file, os.Getenv)
	if err != nil {
		return settings, usage(err)
	}
	if f.data != "" {
		settings.Data = f.data
	}
	return settings, nil
}

// load reads task sets of any form.
func (f *taskFlags) load(ctx context.Context, settings config.Config, paths []string) ([]*tasks.Task, []tasks.Problem) {
	return loadSets(ctx, settings.Data, f.source, paths)
}

// loadSets reads task sets of any form; rows become tasks in a folder of the data folder.
func loadSets(ctx context.Context, data, source string, paths []string) ([]*tasks.Task, []tasks.Problem) {
	return sets.Load(ctx, sets.Options{Dir: filepath.Join(data, "sets"), Source: source}, paths...)
}
