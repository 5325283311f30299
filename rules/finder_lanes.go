package rules

// A step of the finder waits for the state and the row that the step before it named, which for a text of many words come
// from the processor's second cache. Four walks, each through its part of a long text, hide that from each other. All
// start at the root, each but the first as many bytes before its part as a literal has at most, less one: what ends in its
// part it then finds, and what it finds before is there as well. They note where literals end, and look at which only
// afterwards, for that is as hard to guess as text is.

const (
	finderLanes = 4
	laneText    = 256  // bytes of a text that is worth them
	laneNotes   = 1024 // states noted before they are looked at
)

// inLanes is scan of a text of at least laneText bytes.
func (f *finder) inLanes(text string, found bits) (bits, bool) {
	part := len(text) / finderLanes
	a := text[:part]
	b, c, d := text[part-f.overlap:][:len(a)], text[2*part-f.overlap:][:len(a)], text[3*part-f.overlap:][:len(a)]
	var notes [laneNotes]int32
	n, most := 0, int32(len(f.ends))
	sa, sb, sc, sd := f.root, f.root, f.root, f.root
	var high byte
	for i := range len(a) {
		high |= a[i] | b[i] | c[i] | d[i]
		sa = f.next(sa, f.class[a[i]])
		notes[n&(laneNotes-1)] = sa
		n += ends(sa, most)
		sb = f.next(sb, f.class[b[i]])
		notes[n&(laneNotes-1)] = sb
		n += ends(sb, most)
		sc = f.next(sc, f.class[c[i]])
		notes[n&(laneNotes-1)] = sc
		n += ends(sc, most)
		sd = f.next(sd, f.class[d[i]])
		notes[n&(laneNotes-1)] = sd
		n += ends(sd, most)
		if n > laneNotes-finderLanes {
			found, n = f.noteAll(notes[:n], found), 0
		}
	}
	found = f.noteAll(notes[:n], found)
	ascii := high < 0x80
	for k, s := range []int32{sb, sc, sd} {
		end := len(text)
		if k < 2 {
			end = (k + 2) * part
		}
		var more bool
		found, more = f.from(s, text[(k+2)*part-f.overlap:end], found)
		ascii = ascii && more
	}
	return found, ascii
}

// ends is 1 where literals end in a state, of which there are so many, and else 0.
func ends(s, marked int32) int { return int(uint32(s-marked) >> 31) }

// noteAll adds the literals that end in some states.
func (f *finder) noteAll(states []int32, found bits) bits {
	for _, s := range states {
		if !found.has(int(f.longest[s])) {
			found = f.note(found, s)
		}
	}
	return found
}
