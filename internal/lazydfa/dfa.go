package lazydfa

import (
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Bounds of an automaton. 128 KiB hold the 100 to 300 states that the widest expressions of rules and judge reach over
// real code; past two refills in one text the states do not pay for themselves.
const (
	maxStateBytes = 128 << 10
	maxClasses    = 192
	maxDFAProgram = 6000 // instructions
	maxRefills    = 2    // in one text
)

// DFA is one expression's automaton. Safe for concurrent use.
type DFA struct {
	expr string

	once     sync.Once
	prog     *syntax.Prog // nil where the expression is not for an automaton
	classes  classes
	anchored bool
	edge     bool   // it asks for the text's start, which no line's start but the first is
	stride   uint32 // cells of a state: one for each class, the last for the text's end

	credit atomic.Int32 // below 0: one lane; see lanes.go

	mu   sync.Mutex // guards what is added to the cache
	work stepper
	live atomic.Pointer[stateCache]
}

// stateCache is a generation of states; a full one is replaced as a whole.
type stateCache struct {
	start  uint32
	fresh  [numKinds]atomic.Uint32 // by the kind of the rune before it, the state of a search that starts within a text; 0: not made
	byKey  map[string]uint32
	states []*stateThreads
	table  atomic.Pointer[[]uint32] // a longer copy replaces it; what an old one says stays true
	bytes  int
}

// stateThreads is what a state stands for.
type stateThreads struct {
	threads []uint32
	before  runeKind
	reaches [numKinds]*reach // by the kind of the rune after it; made when first asked for
}

// What a cell of the table says beside the place of the next state's cells, which is at least a stride.
const (
	cellUnknown = iota
	cellMatch
	cellDead
	firstRows = 4 // that a table has room for to begin with
)

// New makes the automaton of an expression that compiles. It costs nothing before the first text.
func New(expr string) *DFA { return &DFA{expr: expr} }

// Expr gives the expression.
func (d *DFA) Expr() string { return d.expr }

// Prepare does what else the first text would have to wait for.
func (d *DFA) Prepare() { d.once.Do(d.prepare) }

// prepare compiles the expression.
func (d *DFA) prepare() {
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
	d.stride = max(uint32(d.classes.n)+1, cellDead+1)
	d.anchored = prog.StartCond()&syntax.EmptyBeginText != 0
	d.edge = emptyOps(prog)&syntax.EmptyBeginText != 0
	d.work = newStepper(prog, &d.classes, !d.anchored)
	d.prog = prog
	d.credit.Store(laneCredit)
	d.live.Store(d.empty())
}

// empty makes a cache with the start state alone. Its caller holds mu, or is the first.
func (d *DFA) empty() *stateCache {
	c := &stateCache{byKey: map[string]uint32{}}
	table := make([]uint32, firstRows*d.stride)
	c.table.Store(&table)
	c.start = d.state(c, []uint32{uint32(d.prog.Start)}, kindNone)
	return c
}

// Match says whether the expression matches somewhere in text; ok is false where it cannot say.
func (d *DFA) Match(text string) (matched, ok bool) {
	d.Prepare()
	if d.prog == nil {
		return false, false
	}
	if d.worthLanes(text) {
		if matched, ok = d.inLanes(text); ok {
			return matched, true
		}
	}
	return d.inOne(text)
}

// inOne is Match in one walk from the text's start to its end.
func (d *DFA) inOne(text string) (matched, ok bool) {
	cache := d.live.Load()
	table, s, refills := *cache.table.Load(), cache.start, 0
	for i := 0; i <= len(text); {
		i, s = d.known(table, text, i, s)
		class, n := d.classAt(text, i)
		i += n
		next := atomic.LoadUint32(&table[s+class])
		if next == cellUnknown {
			if next, table, ok = d.follow(cache, s, class); !ok {
				if refills++; refills > maxRefills {
					return false, false
				}
				cache, next, table = d.refill(cache, s, class)
			}
		}
		if next <= cellDead {
			return next == cellMatch, true
		}
		s = next
	}
	return false, true
}

// MatchOr is Match with the answer of plain, the expression's definition, where the automaton cannot say.
func (d *DFA) MatchOr(text string, plain func(string) bool) bool {
	if matched, ok := d.Match(text); ok {
		return matched
	}
	return plain(text)
}

// known follows what the table knows from the i-th byte on, up to a byte that is no ASCII, a cell that is no state's,
// or the text's end. Nearly all of a search is spent here.
func (d *DFA) known(table []uint32, text string, i int, s uint32) (int, uint32) {
	ascii := &d.classes.ascii
	for ; i < len(text); i++ {
		next := atomic.LoadUint32(&table[s+uint32(ascii[text[i]])])
		if next <= cellDead {
			break
		}
		s = next
	}
	return i, s
}

// classAt gives the class of what stands at the i-th byte, and its length; at the text's end one byte too many, which
// ends the search.
func (d *DFA) classAt(text string, i int) (class uint32, n int) {
	switch {
	case i == len(text):
		return uint32(d.classes.n), 1
	case text[i] < utf8.RuneSelf:
		return uint32(d.classes.ascii[text[i]]), 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return uint32(d.classes.of(r)), n
}

// follow finds the successor of s and keeps it; not ok where the cache is full.
func (d *DFA) follow(c *stateCache, s, class uint32) (next uint32, table []uint32, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	table = *c.table.Load()
	if next = table[s+class]; next != cellUnknown {
		return next, table, true
	}
	if c.bytes > maxStateBytes {
		return 0, nil, false
	}
	next = d.successor(c, c.of(s, d.stride), class)
	table = *c.table.Load()
	atomic.StoreUint32(&table[s+class], next)
	return next, table, true
}

// refill replaces a full cache, where nobody has yet, and gives the one to go on with, and in it the successor of s,
// a state of the full one.
func (d *DFA) refill(full *stateCache, s, class uint32) (c *stateCache, next uint32, table []uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c = d.live.Load(); c == full {
		c = d.empty()
		d.live.Store(c)
	}
	next = d.successor(c, full.of(s, d.stride), class)
	return c, next, *c.table.Load()
}

// of gives what the state with its cells at s stands for. The first row of the table is nobody's.
func (c *stateCache) of(s, stride uint32) *stateThreads { return c.states[s/stride-1] }

// successor gives the cell that says where class leads from a state.
func (d *DFA) successor(c *stateCache, from *stateThreads, class uint32) uint32 {
	end := class == uint32(d.classes.n)
	after := kindNone
	if !end {
		after = d.classes.kinds[class]
	}
	r := from.reaches[after]
	if r == nil {
		r = d.work.reach(from, after)
		from.reaches[after] = r
		c.bytes += 48 + 4*len(r.pcs)
	}
	if r.matched {
		return cellMatch
	}
	if end {
		return cellDead
	}
	threads := d.work.step(r, class)
	if d.anchored && len(threads) == 0 {
		return cellDead
	}
	return d.state(c, threads, after)
}

// state gives the cached state of a sorted set of threads, which it does not keep.
func (d *DFA) state(c *stateCache, threads []uint32, before runeKind) uint32 {
	key := append(d.work.key[:0], byte(before))
	for _, t := range threads {
		key = append(key, byte(t), byte(t>>8), byte(t>>16))
	}
	d.work.key = key
	if s, ok := c.byKey[string(key)]; ok {
		return s
	}
	c.states = append(c.states, &stateThreads{threads: slices.Clone(threads), before: before})
	s := uint32(len(c.states)) * d.stride
	if table := *c.table.Load(); int(s+d.stride) > len(table) {
		longer := make([]uint32, 2*len(table))
		copy(longer, table)
		c.table.Store(&longer)
	}
	c.byKey[string(key)] = s
	c.bytes += 128 + 4*int(d.stride) + 7*len(threads)
	return s
}
