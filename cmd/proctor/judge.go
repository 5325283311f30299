package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/judge"
)

// newJudgeCommand groups what is done with a judge alone.
func newJudgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "judge",
		Short: "Ask a judge about one call, or measure it on corpora",
	}
	cmd.AddCommand(newJudgeAsk(), newJudgeEval())
	return cmd
}

// judgeFlags are the flags that pick a judge.
type judgeFlags struct {
	judge, model string
	timeout      time.Duration
}

func (j *judgeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&j.judge, "judge", "heuristic", "`heuristic`, or the base URL of an OpenAI-compatible endpoint")
	f.StringVar(&j.model, "judge-model", "", "model that the endpoint serves")
	f.DurationVar(&j.timeout, "judge-timeout", 20*time.Second, "longest wait for one answer")
}

// open gives the judge, wired as in a server. The key comes from PROCTOR_JUDGE_API_KEY alone, so that
// it stands in no list of processes.
func (j *judgeFlags) open() (judge.Judge, error) {
	c := config.Judge{Model: j.model, Timeout: j.timeout, APIKey: os.Getenv("PROCTOR_JUDGE_API_KEY")}
	if j.judge != "heuristic" {
		c.URL = j.judge
	}
	made, err := newJudge(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, usage(err)
	}
	return made, nil
}
