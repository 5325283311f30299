package lazydfa

import (
	"regexp/syntax"
	"slices"
)

// stepper makes the steps of an automaton, one after the other.
type stepper struct {
	prog  *syntax.Prog
	of    *classes
	fresh bool // a thread starts at every rune

	seen  []uint32 // by instruction, the last turn that met it
	turn  uint32
	stack []uint32
	out   []uint32
	key   []byte
}

// newStepper makes the stepper of a program, whose runes fall into classes.
func newStepper(prog *syntax.Prog, c *classes, fresh bool) stepper {
	return stepper{prog: prog, of: c, fresh: fresh, seen: make([]uint32, len(prog.Inst))}
}

// reach is where threads get to without reading a rune, before one of a given kind.
type reach struct {
	pcs     []uint32 // of instructions that read one
	matched bool     // the expression has matched; pcs is not complete then
}

// reach follows the threads of a state up to a rune of the kind after.
func (w *stepper) reach(from *stateThreads, after runeKind) *reach {
	flags := syntax.EmptyOpContext(from.before.rune(), after.rune())
	if w.turn++; w.turn == 0 {
		clear(w.seen)
		w.turn = 1
	}
	w.stack, w.out = w.stack[:0], w.out[:0]
	for _, t := range from.threads {
		w.push(t)
	}
	if w.fresh {
		w.push(uint32(w.prog.Start))
	}
	for len(w.stack) > 0 {
		pc := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		switch in := &w.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return &reach{matched: true}
		case syntax.InstAlt, syntax.InstAltMatch:
			w.push(in.Out)
			w.push(in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			w.push(in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				w.push(in.Out)
			}
		case syntax.InstFail:
		default:
			w.out = append(w.out, pc)
		}
	}
	return &reach{pcs: slices.Clone(w.out)}
}

func (w *stepper) push(pc uint32) {
	if w.seen[pc] != w.turn {
		w.seen[pc] = w.turn
		w.stack = append(w.stack, pc)
	}
}

// step gives the threads that are left after a rune of class, sorted, until the next step.
func (w *stepper) step(r *reach, class uint32) []uint32 {
	w.out = w.out[:0]
	for _, pc := range r.pcs {
		if w.of.takes[w.of.index[pc]].has(class) {
			w.out = append(w.out, w.prog.Inst[pc].Out)
		}
	}
	slices.Sort(w.out)
	return slices.Compact(w.out)
}
