package rules

import (
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// A deterministic automaton, built as texts are read.
//
// Why: package regexp follows every live thread at every byte, so that a long alternation over a long
// file costs milliseconds: 20 to 200 ns a byte. Whether a text matches at all, which is all that a
// condition asks, a deterministic automaton answers with one table look-up a byte, whatever the
// expression.
//
// How: a state is the set of threads of the compiled program after the last rune, not yet followed
// through what consumes nothing, with the kind of that rune; ^, $ and \b are decided when the next rune
// is known (Thompson's construction, done lazily, as RE2 does it). Runes fall into classes that no
// instruction tells apart. A state's successors are found when first asked for and kept, for every later
// text of every rollout.
//
// Guarantee: match says what regexp.MatchString says, invalid UTF-8 included (a fuzz target and the corpora
// hold it to that), or that it does not know: an expression with too many classes, or a text that
// makes more states than fit. The caller then asks regexp. The memory of one automaton is bounded by
// maxStateBytes, whatever texts an adversary sends.

// Bounds of an automaton. 128 KiB hold the 100 to 400 states that the core pack's widest expressions reach over the
// corpora; past two refills in one text the states do not pay for themselves.
const (
	maxStateBytes = 128 << 10
	maxClasses    = 192
	maxDFAProgram = 6000 // instructions
	maxRefills    = 2    // in one text
)

// dfa is one expression's automaton. Safe for concurrent use.
type dfa struct {
	expr string

	once     sync.Once
	prog     *syntax.Prog // nil where the expression is not for an automaton
	classes  classes
	anchored bool

	mu   sync.Mutex // guards what is added to the cache
	live atomic.Pointer[stateCache]
}

// stateCache is a generation of states; a full one is replaced as a whole.
type stateCache struct {
	start *dfaState
	byKey map[string]*dfaState
	bytes int
}

// dfaState is a set of threads; next is by class, the last for the text's end.
type dfaState struct {
	threads []uint32
	before  runeKind
	next    []atomic.Pointer[dfaState]
}

// The two states that end a search.
var (
	stateMatch = &dfaState{}
	stateDead  = &dfaState{}
)

// newDFA makes the automaton of an expression that compiles. It costs nothing before the first text.
func newDFA(expr string) *dfa { return &dfa{expr: expr} }

// prepare compiles the expression.
func (d *dfa) prepare() {
	re, err := syntax.Parse(d.expr, syntax.Perl)
	if err != nil {
		return
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxDFAProgram {
		return
	}
	var ok bool
	if d.classes, ok = classesOf(prog); !ok {
		return
	}
	d.anchored = prog.StartCond()&syntax.EmptyBeginText != 0
	d.prog = prog
	d.live.Store(d.empty())
}

// empty makes a cache with the start state alone.
func (d *dfa) empty() *stateCache {
	c := &stateCache{byKey: map[string]*dfaState{}}
	c.start = d.state(c, []uint32{uint32(d.prog.Start)}, kindNone)
	return c
}

// match says whether the expression matches somewhere in text; ok is false where it cannot say.
func (d *dfa) match(text string) (matched, ok bool) {
	d.once.Do(d.prepare)
	if d.prog == nil {
		return false, false
	}
	cache := d.live.Load()
	s, refills := cache.start, 0
	for i := 0; i <= len(text); {
		class := d.classes.n
		switch {
		case i == len(text):
			i++
		case text[i] < utf8.RuneSelf:
			class = int(d.classes.ascii[text[i]])
			i++
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			class = d.classes.of(r)
			i += n
		}
		next := s.next[class].Load()
		if next == nil {
			if next = d.follow(cache, s, class); next == nil {
				if refills++; refills > maxRefills {
					return false, false
				}
				cache = d.refill(cache)
				if next = d.follow(cache, s, class); next == nil {
					return false, false
				}
			}
		}
		if next == stateMatch {
			return true, true
		}
		if next == stateDead {
			return false, true
		}
		s = next
	}
	return false, true
}

// refill replaces a full cache, where nobody has yet, and gives the one to go on with.
func (d *dfa) refill(full *stateCache) *stateCache {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.live.Load(); now != full {
		return now
	}
	c := d.empty()
	d.live.Store(c)
	return c
}

// follow finds the successor of s and keeps it; nil where the cache is full.
func (d *dfa) follow(cache *stateCache, s *dfaState, class int) *dfaState {
	d.mu.Lock()
	defer d.mu.Unlock()
	if next := s.next[class].Load(); next != nil {
		return next
	}
	if cache.bytes > maxStateBytes {
		return nil
	}
	threads, matched := d.step(s, class)
	var next *dfaState
	switch {
	case matched:
		next = stateMatch
	case class == d.classes.n, d.anchored && len(threads) == 0:
		next = stateDead
	default:
		next = d.state(cache, threads, d.classes.kinds[class])
	}
	s.next[class].Store(next)
	return next
}

// state gives the cached state of a sorted set of threads.
func (d *dfa) state(cache *stateCache, threads []uint32, before runeKind) *dfaState {
	key := make([]byte, 0, 1+3*len(threads))
	key = append(key, byte(before))
	for _, t := range threads {
		key = append(key, byte(t), byte(t>>8), byte(t>>16))
	}
	if s, ok := cache.byKey[string(key)]; ok {
		return s
	}
	s := &dfaState{threads: threads, before: before, next: make([]atomic.Pointer[dfaState], d.classes.n+1)}
	cache.byKey[string(key)] = s
	cache.bytes += 128 + 8*len(s.next) + 7*len(threads)
	return s
}

// step follows the threads of s to the next rune's class: those that are left after it, or a match
// before it.
func (d *dfa) step(s *dfaState, class int) (threads []uint32, matched bool) {
	after := kindNone
	if class < d.classes.n {
		after = d.classes.kinds[class]
	}
	flags := syntax.EmptyOpContext(s.before.rune(), after.rune())
	seen := make([]bool, len(d.prog.Inst))
	stack := make([]uint32, 0, len(s.threads)+8)
	for _, t := range s.threads {
		seen[t] = true
		stack = append(stack, t)
	}
	push := func(pc uint32) {
		if !seen[pc] {
			seen[pc] = true
			stack = append(stack, pc)
		}
	}
	if !d.anchored {
		push(uint32(d.prog.Start))
	}
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch in := &d.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			push(in.Out)
			push(in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			push(in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				push(in.Out)
			}
		case syntax.InstFail:
		default:
			if class < d.classes.n && in.MatchRune(d.classes.sample[class]) {
				threads = append(threads, in.Out)
			}
		}
	}
	slices.Sort(threads)
	return slices.Compact(threads), false
}
