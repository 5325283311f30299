package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/docker"
)

// parallel compares commands in many sandboxes at once with as many on the host. All sides run twice, in
// turns, and the better half of each counts: what disturbs one disturbs the others alike.
func (b *execBench) parallel(ctx context.Context, engine *docker.Engine, server *benchServer) (parallelReport, error) {
	fmt.Fprintf(b.progress, "starting %d sandboxes and as many rollouts\n", b.rollouts)
	boxes, err := b.boxes(ctx, engine)
	defer closeAll(context.WithoutCancel(ctx), boxes)
	if err != nil {
		return parallelReport{}, err
	}
	agents, err := server.agents(ctx, b.image, b.rollouts)
	if err != nil {
		return parallelReport{}, err
	}
	fmt.Fprintln(b.progress, "timing them at once")
	r := parallelReport{Rollouts: b.rollouts}
	for range 2 {
		bare, err := perSecond(ctx, b.rollouts, b.span/2, func(ctx context.Context, _ int) error { return bareBash(ctx) })
		if err != nil {
			return r, err
		}
		calls, err := perSecond(ctx, b.rollouts, b.span/2, func(ctx context.Context, i int) error { return oneshot(ctx, boxes[i]) })
		if err != nil {
			return r, err
		}
		http, err := perSecond(ctx, b.rollouts, b.span/2, func(ctx context.Context, i int) error { return agents[i].bash(ctx, "bash -c true") })
		if err != nil {
			return r, err
		}
		r.Bash, r.Calls, r.HTTPCalls = max(r.Bash, math.Round(bare)), max(r.Calls, math.Round(calls)), max(r.HTTPCalls, math.Round(http))
	}
	r.Ratio, r.HTTPRatio = ratio(r.Calls, r.Bash), ratio(r.HTTPCalls, r.Bash)
	return r, nil
}

// boxes makes the sandboxes, all asked for at once. Those made are given even with an error.
func (b *execBench) boxes(ctx context.Context, engine *docker.Engine) ([]sandbox.Session, error) {
	var mu sync.Mutex
	var made []sandbox.Session
	var errs []error
	var group sync.WaitGroup
	for range b.rollouts {
		group.Go(func() {
			box, err := engine.Create(ctx, sandbox.Spec{Name: "bench", Image: b.image, Limits: sandbox.Limits{MemoryMB: 256}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else {
				made = append(made, box)
			}
		})
	}
	group.Wait()
	return made, errors.Join(errs...)
}

// closeAll removes sandboxes, eight at a time.
func closeAll(ctx context.Context, boxes []sandbox.Session) {
	turns := make(chan struct{}, 8)
	var group sync.WaitGroup
	for _, box := range boxes {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			_ = box.Close(ctx) // what stays is found by its label
		})
	}
	group.Wait()
}

// perSecond runs `run` from n callers over and over for span, and gives how many ended each second.
func perSecond(ctx context.Context, n int, span time.Duration, run func(ctx context.Context, caller int) error) (float64, error) {
	var done atomic.Int64
	var failure atomic.Pointer[error]
	began := time.Now()
	var group sync.WaitGroup
	for caller := range n {
		group.Go(func() {
			for time.Since(began) < span && failure.Load() == nil {
				if err := run(ctx, caller); err != nil {
					failure.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}
