package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"proctor/sandbox"
	"proctor/sandbox/pool"
)

// openPool gives what makes rollouts' sandboxes: the engine, with a pool over it where the settings ask for
// one. Graders' sandboxes do without: each is of another kind, and a grade waits for its tests, not for them.
func (s *server) openPool(registry prometheus.Registerer) (sandbox.Engine, error) {
	if s.cfg.PoolMax == 0 {
		return s.engine, nil
	}
	observer, err := pool.Metrics(registry)
	if err != nil {
		return nil, err
	}
	s.pool, err = pool.New(s.engine, pool.Options{Max: s.cfg.PoolMax, Observer: observer, Log: s.log.With("part", "pool")})
	return s.pool, err
}
