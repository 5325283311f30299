package critic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kinds of states: why the critic is asked there.
const (
	KindTurn    = "turn"    // before a call
	KindSegment = "segment" // before the first call of a segment
	KindVerdict = "verdict" // behind a call that was blocked or flagged
)

// Step is one call of the agent as a state's prefix tells it.
type Step struct {
	Ordinal   int
	Name      string
	Arguments json.RawMessage
	Shown     string // what the agent was shown, decoy or not
	ExitCode  *int
	Marked    bool // blocked or flagged
	Segment   int  // which segment it belongs to, from 0; coming back to an earlier one is no start
}

// State is a point of a rollout at which a critic can be asked.
type State struct {
	Kind    string
	Ordinal int // of the call that comes next; one more than the last call's for the end of the rollout
	Prefix  string
	SHA256  string // of Prefix, hex: equal states are one state
}

// Bounds of a prefix: a critic has a context, and an observation can be 64 KiB.
const (
	maxShown  = 4 << 10  // bytes of one observation, head and tail
	maxPrefix = 96 << 10 // bytes of a prefix; older steps are left out first
)

// States gives the states of the wanted kinds (nil: all), in order. Two kinds at one point are one state,
// under the first that fits of segment, verdict, turn.
func States(instruction string, steps []Step, kinds []string) []State {
	wanted := func(kind string) bool { return len(kinds) == 0 || slices.Contains(kinds, kind) }
	var out []State
	var told []string
	begun := map[int]bool{}
	for i, s := range steps {
		kind := ""
		switch {
		case wanted(KindSegment) && !begun[s.Segment]:
			kind = KindSegment
		case wanted(KindVerdict) && i > 0 && steps[i-1].Marked:
			kind = KindVerdict
		case wanted(KindTurn):
			kind = KindTurn
		}
		if kind != "" {
			out = append(out, state(kind, s.Ordinal, instruction, told))
		}
		told = append(told, tell(s))
		begun[s.Segment] = true
	}
	if n := len(steps); n > 0 && steps[n-1].Marked && wanted(KindVerdict) {
		out = append(out, state(KindVerdict, steps[n-1].Ordinal+1, instruction, told))
	}
	return out
}

// After gives the state behind all of these steps, as of kind turn: what a continuation is ranked by.
func After(instruction string, steps []Step) State {
	told, next := make([]string, len(steps)), 1
	for i, s := range steps {
		told[i], next = tell(s), s.Ordinal+1
	}
	return state(KindTurn, next, instruction, told)
}

func state(kind string, ordinal int, instruction string, told []string) State {
	instruction = cut(instruction, maxPrefix/4)
	size, first := len(instruction), len(told)
	for first > 0 && size+len(told[first-1]) <= maxPrefix {
		first--
		size += len(told[first])
	}
	var b strings.Builder
	b.WriteString("Task:\n" + instruction + "\n")
	if first > 0 {
		fmt.Fprintf(&b, "\n[%d earlier steps left out]\n", first)
	}
	for _, t := range told[first:] {
		b.WriteString(t)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return State{Kind: kind, Ordinal: ordinal, Prefix: b.String(), SHA256: hex.EncodeToString(sum[:])}
}

// tell writes a step down. Times and ids stay out, so that equal states are equal texts.
func tell(s Step) string {
	exit := "none"
	if s.ExitCode != nil {
		exit = fmt.Sprint(*s.ExitCode)
	}
	return fmt.Sprintf("\nCall %s %s\nExit %s, output:\n%s\n", s.Name, cut(string(s.Arguments), maxShown), exit, cut(s.Shown, maxShown))
}

// cut keeps the head and tail of a text, whole runes, and says how much is gone.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	half := limit / 2
	return strings.ToValidUTF8(s[:half], "") + fmt.Sprintf("\n[%d bytes left out]\n", len(s)-2*half) + strings.ToValidUTF8(s[len(s)-half:], "")
}
