package critic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
)

// PairSchema names the form of a line of critic pairs.
const PairSchema = "proctor.critic_pair/1"

// Pair is what a critic trains on and is measured by: one line of JSON.
type Pair struct {
	Schema       string       `json:"schema"`
	State        string       `json:"state"` // SHA-256 of the prefix, hex
	Prefix       string       `json:"prefix"`
	Conditioning Conditioning `json:"conditioning"`
	Return       float64      `json:"return"`         // mean over the pooled rollouts, 0 to 1
	N            int          `json:"n"`              // rollouts pooled
	Kind         string       `json:"kind,omitempty"` // turn, segment, verdict
	Fork         string       `json:"fork,omitempty"` // names the state that continuations were forked from: they are ranked among each other
	Value        *float64     `json:"value,omitempty"`
}

// Pool joins pairs of one state under one conditioning: their return is the mean over rollouts. Order is
// that of first appearance.
func Pool(pairs []Pair) []Pair {
	index := map[string]int{}
	var out []Pair
	for _, p := range pairs {
		p.N = max(p.N, 1)
		cond, _ := json.Marshal(p.Conditioning)
		key := p.State + "\x00" + string(cond) + "\x00" + p.Fork
		i, ok := index[key]
		if !ok {
			index[key] = len(out)
			out = append(out, p)
			continue
		}
		have := &out[i]
		n := have.N + p.N
		have.Return = (have.Return*float64(have.N) + p.Return*float64(p.N)) / float64(n)
		have.N = n
	}
	return out
}

// PairsOf makes the pairs of one rollout: every state with the rollout's reward as its return.
func PairsOf(states []State, cond Conditioning, reward float64) []Pair {
	out := make([]Pair, 0, len(states))
	for _, s := range states {
		out = append(out, Pair{Schema: PairSchema, State: s.SHA256, Prefix: s.Prefix, Conditioning: cond, Return: reward, N: 1, Kind: s.Kind})
	}
	return out
}

// ErrPair marks a line that is no pair; its text says which line and why.
var ErrPair = errors.New("critic pair")

// maxLine bounds one line of a file of pairs.
const maxLine = 4 << 20

// ReadPairs reads JSON lines. Lines that are no pair are given as errors beside the pairs that are.
func ReadPairs(r io.Reader) (pairs []Pair, bad []error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	n := 0
	for in.Scan() {
		n++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		p, err := readPair(in.Bytes())
		if err != nil {
			bad = append(bad, fmt.Errorf("%w: line %d: %v", ErrPair, n, err))
			continue
		}
		pairs = append(pairs, p)
	}
	if err := in.Err(); err != nil {
		bad = append(bad, fmt.Errorf("%w: line %d: %v (the longest line is %d bytes)", ErrPair, n+1, err, maxLine))
	}
	return pairs, bad
}

func readPair(line []byte) (Pair, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var p Pair
	if err := dec.Decode(&p); err != nil {
		return p, err
	}
	switch {
	case p.Schema != PairSchema:
		return p, fmt.Errorf("schema is %.40q, want %q", p.Schema, PairSchema)
	case p.Prefix == "":
		return p, errors.New("prefix is missing")
	case math.IsNaN(p.Return) || p.Return < 0 || p.Return > 1:
		return p, fmt.Errorf("return is %v, want 0 to 1", p.Return)
	case p.Value != nil && (*p.Value < 0 || *p.Value > 1):
		return p, fmt.Errorf("value is %v, want 0 to 1 or null", *p.Value)
	}
	return p, nil
}

// WritePairs writes pairs as JSON lines.
func WritePairs(w io.Writer, pairs []Pair) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, p := range pairs {
		if err := enc.Encode(p); err != nil {
			return fmt.Errorf("write pair: %w", err)
		}
	}
	return nil
}

// forks gives the pairs that belong to one fork each, in order of the fork's name.
func forks(pairs []Pair) [][]Pair {
	by := map[string][]Pair{}
	for _, p := range pairs {
		if p.Fork != "" {
			by[p.Fork] = append(by[p.Fork], p)
		}
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make([][]Pair, 0, len(by))
	for _, name := range names {
		out = append(out, by[name])
	}
	return out
}
