package scan

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"proctor/internal/traces"
	"proctor/judge"
	"proctor/monitor/classifier"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// Scanner scans. Its fields are set before Run.
type Scanner struct {
	Packs *rules.Packs
	Judge judge.Judge  // nil: rules alone, and every hit is suspected
	Tasks corpus.Tasks // variables by task id

	Classifier *classifier.Model // nil: the built-in one
	Workers    int               // trajectories at once; 0: as many as processors
	Say        func(trajectories, calls int)

	sets setCache
	done atomic.Int64
	seen atomic.Int64
}

// numbered is a document with its place in the stream.
type numbered struct {
	doc *traces.Document
	at  int
}

// Run scans all documents. What cannot be read is in the report; an error is ctx's.
func (s *Scanner) Run(ctx context.Context, docs iter.Seq2[*traces.Document, error]) (*Report, error) {
	s.sets.packs = s.Packs
	n := s.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	in := make(chan numbered, n)
	parts := make([]*Report, n)
	var wg sync.WaitGroup
	for i := range parts {
		parts[i] = newReport()
		wg.Go(func() {
			for d := range in {
				s.document(ctx, parts[i], d)
			}
		})
	}
	out := newReport()
	out.Packs, out.Judge = s.Packs.Digest(), "none"
	if s.Judge != nil {
		out.Judge = s.Judge.Name()
	}
	feed(ctx, docs, in, out)
	wg.Wait()
	for _, p := range parts {
		out.merge(p)
	}
	out.finish()
	return out, ctx.Err()
}

// feed hands documents to the workers.
func feed(ctx context.Context, docs iter.Seq2[*traces.Document, error], in chan<- numbered, out *Report) {
	defer close(in)
	at := 0
	for d, err := range docs {
		if err != nil {
			out.unknown(err)
			continue
		}
		select {
		case in <- numbered{d, at}:
			at++
		case <-ctx.Done():
			return
		}
	}
}

func (r *Report) unknown(err error) {
	var u *traces.Unknown
	if !errors.As(err, &u) {
		u = &traces.Unknown{Reason: err.Error()}
	}
	r.Unknown = append(r.Unknown, *u)
}

// document scans one document.
func (s *Scanner) document(ctx context.Context, into *Report, d numbered) {
	if ctx.Err() != nil {
		return
	}
	list, err := traces.Parse(d.doc)
	if err != nil {
		into.unknown(err)
		return
	}
	for i, t := range list {
		d.doc = nil // its bytes are not needed any more
		if ctx.Err() != nil {
			return
		}
		suspect, err := s.trace(ctx, into, t)
		if err != nil {
			into.Unknown = append(into.Unknown, traces.Unknown{File: t.File, Line: t.Line, Reason: err.Error()})
			continue
		}
		into.Trajectories++
		into.Formats[t.Format]++
		if len(suspect.Calls) > 0 {
			suspect.document, suspect.place = d.at, i
			into.Suspected = append(into.Suspected, suspect)
		}
		if s.Say != nil {
			s.Say(int(s.done.Add(1)), int(s.seen.Load()))
		}
	}
}

// maxSets bounds the compiled sets that are kept; one is some 100 KiB over what they share.
const maxSets = 64

// setCache keeps the packs compiled, by those of the tasks' variables that a rule depends on.
type setCache struct {
	packs *rules.Packs

	mu   sync.Mutex
	sets map[string]*rules.Set
}

func (c *setCache) set(vars rules.Vars) (*rules.Set, error) {
	vars = c.packs.Relevant(vars)
	key := varsKey(vars)
	c.mu.Lock()
	set := c.sets[key]
	c.mu.Unlock()
	if set != nil {
		return set, nil
	}
	set, err := rules.Compile(c.packs, vars)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets == nil || len(c.sets) >= maxSets {
		c.sets = map[string]*rules.Set{}
	}
	c.sets[key] = set
	return set, nil
}

func itoa(n int) string { return strconv.Itoa(n) }
