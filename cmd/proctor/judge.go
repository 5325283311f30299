package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/judge"
	"proctor/monitor/classifier"
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
	judge, model   string
	timeout        time.Duration
	replay, record string
	votes          int
	priceIn        float64
	priceOut       float64
	classifier     string
}

func (j *judgeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&j.judge, "judge", "heuristic", "`heuristic`, or the base URL of an OpenAI-compatible endpoint")
	f.StringVar(&j.model, "judge-model", "", "model that the endpoint serves")
	f.DurationVar(&j.timeout, "judge-timeout", 20*time.Second, "longest wait for one answer")
	f.IntVar(&j.votes, "judge-votes", 1, "questions in all where the first answer is unsure; more than half decide")
	f.Float64Var(&j.priceIn, "judge-price-in", 0, "price of a million tokens of question, for the cost")
	f.Float64Var(&j.priceOut, "judge-price-out", 0, "price of a million tokens of answer, for the cost")
	f.StringVar(&j.classifier, "classifier", "", "`FILE` of a model of proctor classifier train (default: the built-in one)")
	f.StringVar(&j.replay, "replay", "", "answer from decisions recorded in `FILE`, or from a trajectory, and ask no judge")
	f.StringVar(&j.record, "record", "", "write each decision to `FILE`, for --replay")
}

// session is an opened judge, and what is to be looked at once it has been asked.
type session struct {
	judge      judge.Judge
	classifier *classifier.Model // nil: the built-in one
	replay     *judge.Replay
	record     *judge.Recorder
	file       *os.File
}

// close tells what a replay lacked, or what kept decisions from being recorded.
func (s *session) close() error {
	if s.replay != nil {
		if missed := s.replay.Missed(); len(missed) > 0 {
			return usage(fmt.Errorf("%s asked and not recorded; record them with --record:\n  %s",
				plural(len(missed), "question"), strings.Join(missed[:min(len(missed), 10)], "\n  ")))
		}
	}
	if s.record == nil {
		return nil
	}
	if err := errors.Join(s.record.Err(), s.file.Close()); err != nil {
		return infra(fmt.Errorf("record decisions: %w", err))
	}
	return nil
}

// start gives the judge, or the replay in its place, with what records it, and the classifier.
func (j *judgeFlags) start() (*session, error) {
	m, err := loadClassifier(j.classifier)
	if err != nil {
		return nil, err
	}
	s, err := j.decider()
	if err != nil {
		return nil, err
	}
	s.classifier = m
	return s, nil
}

// loadClassifier gives the classifier of a file; nil, which stands for the built-in one, where none is named.
func loadClassifier(file string) (*classifier.Model, error) {
	if file == "" {
		return nil, nil
	}
	m, err := classifier.Load(file)
	if err != nil {
		return nil, usage(fmt.Errorf("classifier: %w", err))
	}
	return m, nil
}

// decider gives the judge, or the replay in its place, with what records it.
func (j *judgeFlags) decider() (*session, error) {
	if j.replay != "" {
		if j.record != "" {
			return nil, usage(errors.New("--replay and --record: give one of them"))
		}
		f, err := os.Open(j.replay)
		if err != nil {
			return nil, usage(err)
		}
		defer f.Close()
		decisions, err := judge.ReadDecisions(f)
		if err == nil {
			var r *judge.Replay
			if r, err = judge.NewReplay(decisions); err == nil {
				return &session{judge: r, replay: r}, nil
			}
		}
		return nil, usage(fmt.Errorf("%s: %w", j.replay, err))
	}
	made, err := j.open()
	if err != nil || j.record == "" {
		return &session{judge: made}, err
	}
	f, err := os.OpenFile(j.record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, infra(err)
	}
	r := judge.NewRecorder(made, f)
	return &session{judge: r, record: r, file: f}, nil
}

// open gives the judge, wired as in a server. The key comes from PROCTOR_JUDGE_API_KEY alone, so that
// it stands in no list of processes.
func (j *judgeFlags) open() (judge.Judge, error) {
	c := config.Judge{Model: j.model, Timeout: j.timeout, APIKey: os.Getenv("PROCTOR_JUDGE_API_KEY"),
		Votes: j.votes, PriceIn: j.priceIn, PriceOut: j.priceOut}
	if j.judge != "heuristic" {
		c.URL = j.judge
	}
	made, err := newJudge(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, usage(err)
	}
	return made, nil
}
