package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"proctor/internal/api"
	"proctor/internal/config"
	"proctor/internal/gateway"
	"proctor/internal/keys"
	"proctor/internal/lab"
	"proctor/internal/records"
	"proctor/internal/rollouts"
	"proctor/internal/store"
	"proctor/monitor"
	"proctor/rules"
	"proctor/sandbox/docker"
	"proctor/sandbox/pool"
	"proctor/tasks"
)

// server is a wired server: every part, in the order in which they are closed.
type server struct {
	cfg     config.Config
	store   *store.Store
	engine  engine
	pool    *pool.Engine // of rollouts' sandboxes, over engine; nil for none
	manager *rollouts.Manager
	witness func() error // closes it; nil before it is opened
	packs   *packSource
	handler http.Handler
	open    http.Handler // without keys: OpenEnv and NeMo-Gym
	key     string       // the trainer key
	log     *slog.Logger
}

// tweak lets a caller, the demo, stand between the parts before they are joined.
type tweak struct {
	lab      func(*lab.Lab) rollouts.Lab
	rollouts func(api.Rollouts) api.Rollouts
	tasks    []*tasks.Task // in place of those that the settings name
}

// openServer wires a server from its settings. What it opened is closed again where it fails.
func openServer(ctx context.Context, cfg config.Config, log *slog.Logger, tw tweak) (_ *server, err error) {
	s := &server{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(false))
		}
	}()
	if err := cfg.Check(); err != nil {
		return nil, usage(err)
	}
	taskList, err := loadTasks(ctx, cfg.Data, cfg.Tasks)
	if err != nil {
		return nil, err
	}
	if tw.tasks != nil {
		taskList = tw.tasks
	}
	packs, err := packsWithCore(cfg.Packs)
	if err != nil {
		return nil, err
	}
	if s.store, err = store.Open(ctx, cfg.Data, store.Options{}); err != nil {
		return nil, infra(err)
	}
	if s.key, err = trainerKey(cfg); err != nil {
		return nil, infra(err)
	}
	s.engine, err = openEngine(cfg, s.store.Owner(), false, log)
	if err != nil {
		return nil, infra(err)
	}
	s.sweep(ctx)
	return s, s.join(ctx, taskList, packs, tw)
}

// sweep removes what a crash left of earlier servers on this data folder: folders of sandboxes that
// never came to be, and a demo's stand-ins. What it cannot remove stays for the next start.
func (s *server) sweep(ctx context.Context) {
	err := s.engine.Sweep(ctx)
	if services, ok := s.engine.(*docker.Engine); ok {
		err = errors.Join(services.RemoveServices(ctx), err)
	}
	if err != nil {
		s.log.Warn("leftovers of an earlier server stay", "err", err)
	}
}

// join makes the manager and the HTTP layer of an opened server.
func (s *server) join(ctx context.Context, taskList []*tasks.Task, packs *rules.Packs, tw tweak) error {
	decider, err := newJudge(s.cfg.Judge, s.log)
	if err != nil {
		return usage(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	observer, err := rollouts.Metrics(registry)
	if err != nil {
		return infra(err)
	}
	carrier, err := openEgress(s.cfg, registry, s.log)
	if err != nil {
		return err
	}
	bench := lab.New(lab.Options{Engine: s.engine, Data: s.cfg.Data, Egress: carrier, Log: s.log})
	var room rollouts.Lab = bench
	if tw.lab != nil {
		room = tw.lab(bench)
	}
	s.packs = newPackSource(packs, s.cfg.Packs, s.log)
	watch, closeWitness := openWitness(s.cfg.Witness, s.log)
	s.witness = closeWitness
	kept, err := records.New(s.store)
	if err != nil {
		return infra(err)
	}
	counts, err := gateway.NewMetrics(registry)
	if err != nil {
		return infra(err)
	}
	reads, err := loadClassifier(s.cfg.Classifier)
	if err != nil {
		return err
	}
	makes, err := s.openPool(registry)
	if err != nil {
		return infra(err)
	}
	s.manager, err = rollouts.Open(ctx, rollouts.Options{
		Records: kept,
		Store:   s.store, Engine: makes, Lab: room, Tasks: taskList,
		Witness: watch, Secrets: lab.Secrets, Egress: carrier,
		Inline: func(raw json.RawMessage) (*tasks.Task, error) { return tasks.ParseInline(raw) },
		Rules:  s.packs.current, Judge: decider, Policy: policyOf(s.cfg), Classifier: reads,
		MaxRollouts: s.cfg.MaxRollouts, Lease: s.cfg.Lease, Log: s.log, Observer: observer,
	})
	if err != nil {
		return infra(err)
	}
	var surface api.Rollouts = s.manager
	if tw.rollouts != nil {
		surface = tw.rollouts(surface)
	}
	ring, err := keys.Open(s.cfg.Data, func(err error) { s.log.Error("the API keys cannot be read; those read before hold", "err", err) })
	if err != nil {
		return usage(err)
	}
	front := api.New(api.Options{
		Rollouts: surface, Keys: []api.Key{{Secret: s.key, Role: api.RoleAdmin}}, MoreKeys: ring.Find, Version: version,
		Models:   gateway.New(gateway.Options{Target: s.manager.Model, Records: kept, Metrics: counts, Log: s.log}),
		Segments: kept, Packs: s.packs,
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Log: s.log,
	})
	s.handler, s.open = front.Handler(), front.CompatHandler()
	return nil
}

// close lets go of everything; with remove, sandboxes are removed as well.
func (s *server) close(remove bool) error {
	var errs []error
	if s.manager != nil {
		errs = append(errs, s.manager.Close(remove))
	}
	if s.witness != nil {
		errs = append(errs, s.witness())
	}
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// policyOf gives the Gate's policy of the settings.
func policyOf(c config.Config) monitor.Policy {
	return monitor.Policy{Preset: c.Preset, Answers: c.Answers, OnUnsure: c.Judge.OnUnsure, OnFailure: c.Judge.OnFailure, OnOutage: c.Judge.OnOutage}
}

// loadTasks loads task files; every problem is told, and any is an error.
func loadTasks(ctx context.Context, data string, paths []string) ([]*tasks.Task, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	list, problems := loadSets(ctx, data, "", paths)
	if len(problems) == 0 {
		return list, nil
	}
	lines := []string{fmt.Sprintf("%d problem(s) in the tasks:", len(problems))}
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return nil, usage(errors.New(strings.Join(lines, "\n  ")))
}

// packsWithCore gives the built-in core packs with those at paths beside them.
func packsWithCore(paths []string) (*rules.Packs, error) {
	core, err := rules.Core()
	if err != nil {
		return nil, infra(err)
	}
	if len(paths) == 0 {
		return core, nil
	}
	all, problems := rules.LoadBeside(core, paths...)
	if bad := rules.Errors(problems); len(bad) > 0 {
		return nil, usage(packErrors(bad))
	}
	return all, nil
}

func packErrors(bad []rules.Problem) error {
	lines := []string{fmt.Sprintf("%d problem(s) in the packs:", len(bad))}
	for _, p := range bad {
		lines = append(lines, p.String())
	}
	return errors.New(strings.Join(lines, "\n  "))
}

// trainerKey gives the key from the settings, or the data folder's, made at first start.
func trainerKey(c config.Config) (string, error) {
	if c.TrainerKey != "" {
		return c.TrainerKey, nil
	}
	path := filepath.Join(c.Data, "keys", "trainer.key")
	body, err := os.ReadFile(path)
	if err == nil {
		if key := strings.TrimSpace(string(body)); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("%s is empty; remove it, and the next start makes a new key", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the trainer key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make the keys' folder: %w", err)
	}
	secret := make([]byte, 24)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("make the trainer key: %w", err)
	}
	key := "tk_" + hex.EncodeToString(secret)
	if err := writeAtomic(path, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the trainer key: %w", err)
	}
	return key, nil
}

// writeAtomic writes a file so that no reader ever sees half of it.
func writeAtomic(path string, body []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, werr := tmp.Write(body)
	if err := errors.Join(werr, tmp.Chmod(mode), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
