package normalize

import "mvdan.cc/sh/v3/syntax"

// Bounds of what is remembered across the calls of one rollout. An agent that writes more than this
// loses only the oldest knowledge's use for matching, never the call: what is not remembered is
// unknown. 1024 files of at most 64 KiB keep a rollout's state under 64 MiB in the worst case and
// under 1 MiB in every run of the corpora.
const (
	maxEntries = 1024
	maxContent = 64 << 10
)

// table is a map with a top layer that can be thrown away (a call that did not run) or merged (one
// that did). Not safe for concurrent use; the Normalizer's mutex guards it.
type table[V any] struct {
	base map[string]V
	top  map[string]*V // nil value: deleted
}

func (t *table[V]) get(key string) (V, bool) {
	if p, ok := t.top[key]; ok {
		if p == nil {
			var zero V
			return zero, false
		}
		return *p, true
	}
	v, ok := t.base[key]
	return v, ok
}

func (t *table[V]) set(key string, v V) {
	if t.top == nil {
		t.top = map[string]*V{}
	}
	if len(t.base)+len(t.top) >= maxEntries {
		if _, ok := t.get(key); !ok {
			return
		}
	}
	t.top[key] = &v
}

func (t *table[V]) del(key string) {
	if _, ok := t.get(key); !ok {
		return
	}
	if t.top == nil {
		t.top = map[string]*V{}
	}
	t.top[key] = nil
}

// each calls f for every entry, in no order, until f returns false.
func (t *table[V]) each(f func(key string, v V) bool) {
	for k, p := range t.top {
		if p != nil && !f(k, *p) {
			return
		}
	}
	for k, v := range t.base {
		if _, ok := t.top[k]; !ok && !f(k, v) {
			return
		}
	}
}

func (t *table[V]) empty() bool { return len(t.base) == 0 && len(t.top) == 0 }

// fork gives a table that reads this one's base and writes a top of its own.
func (t *table[V]) fork() table[V] { return table[V]{base: t.base} }

func (t *table[V]) commit() {
	if len(t.top) > 0 && t.base == nil {
		t.base = map[string]V{}
	}
	for k, p := range t.top {
		if p == nil {
			delete(t.base, k)
		} else {
			t.base[k] = *p
		}
	}
	t.top = nil
}

// save gives a copy of the top layer, for a subshell; restore puts it back.
func (t *table[V]) save() map[string]*V {
	out := make(map[string]*V, len(t.top))
	for k, v := range t.top {
		out[k] = v
	}
	return out
}

func (t *table[V]) restore(top map[string]*V) { t.top = top }

// variable is a shell variable; Known is false where its value could not be worked out.
type variable struct {
	value    string
	list     []string // an array's elements
	known    bool
	exported bool
}

// function is a shell function with the source that its nodes point into.
type function struct {
	body *syntax.Stmt
	unit *unit
}

// file is what is known of a file that the agent wrote.
type file struct {
	content string // the whole text, or what was added
	whole   bool
	made    bool // it was not there before
	run     bool // a test or build run reads it: written or edited by the agent
}

// state is what earlier calls did, as far as it matters for reading later ones.
type state struct {
	cwd, old string
	vars     table[variable]
	aliases  table[string]
	funcs    table[function]
	files    table[file]
	links    table[string] // path -> target, absolute; copies of hidden things too
	gitAlias table[string]
	ownRefs  table[bool]   // branches, tags and stashes that the agent made
	instead  table[string] // what stands for the start of a URL, by git's insteadOf -> the URL
	strange  table[bool]   // folders into which a foreign revision or the upstream project was brought
}

func (s *state) fork() *state {
	return &state{
		cwd: s.cwd, old: s.old,
		vars: s.vars.fork(), aliases: s.aliases.fork(), funcs: s.funcs.fork(),
		files: s.files.fork(), links: s.links.fork(), gitAlias: s.gitAlias.fork(), ownRefs: s.ownRefs.fork(),
		instead: s.instead.fork(), strange: s.strange.fork(),
	}
}

// commit merges the fork's layers into the maps that it shares with its origin, and returns the
// state to go on with.
func (s *state) commit() *state {
	s.vars.commit()
	s.aliases.commit()
	s.funcs.commit()
	s.files.commit()
	s.links.commit()
	s.gitAlias.commit()
	s.ownRefs.commit()
	s.instead.commit()
	s.strange.commit()
	return s
}

// scope is the part of the state that a subshell gives back.
type scope struct {
	cwd, old string
	vars     map[string]*variable
	aliases  map[string]*string
	funcs    map[string]*function
}

func (s *state) enter() scope {
	return scope{s.cwd, s.old, s.vars.save(), s.aliases.save(), s.funcs.save()}
}

func (s *state) leave(sc scope) {
	s.cwd, s.old = sc.cwd, sc.old
	s.vars.restore(sc.vars)
	s.aliases.restore(sc.aliases)
	s.funcs.restore(sc.funcs)
}
