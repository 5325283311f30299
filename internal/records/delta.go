package records

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"proctor/internal/trajectory"
)

// doc is a stored model call. The embedded call's prompt ids, messages and tools are emptied and its
// arrays packed; what stands for them are the fields here.
type doc struct {
	trajectory.ModelCall

	IDBase int  `json:"id_base,omitempty"` // ordinal of the call whose ids the prompt begins with
	IDKeep int  `json:"id_keep,omitempty"` // how many of them, output included
	IDs    ints `json:"ids,omitempty"`     // the rest of the prompt
	Out    ints `json:"out,omitempty"`
	LP     nums `json:"lp,omitempty"`

	MsgBase  int `json:"msg_base,omitempty"` // ordinal of the call whose messages these begin with
	MsgKeep  int `json:"msg_keep,omitempty"`
	ToolBase int `json:"tool_base,omitempty"` // ordinal of the call with the same tools
}

// anchor is a place that a later prompt may go on from.
type anchor struct {
	ordinal int
	keep    int
	sum     [sha256.Size]byte
}

// index finds, for a new call, the earlier one that it repeats most of. Not safe for concurrent use.
type index struct {
	ids   []anchor // sorted by keep
	msgs  map[[16]byte]anchor
	tools map[[16]byte]int
}

func newIndex() *index {
	return &index{msgs: map[[16]byte]anchor{}, tools: map[[16]byte]int{}}
}

// maxAnchors bounds the anchors that a prompt is held against; the oldest go first.
const maxAnchors = 256

// shrink gives the stored form of c, and the anchors that it adds are noted.
func (x *index) shrink(c *trajectory.ModelCall) doc {
	d := doc{ModelCall: *c, Out: c.OutputIDs, LP: c.Logprobs}
	d.ModelCall.PromptIDs, d.ModelCall.OutputIDs, d.ModelCall.Logprobs = nil, nil, nil
	x.shrinkIDs(c, &d)
	x.shrinkMessages(c, &d)
	if len(c.Tools) > 0 {
		key := short(c.Tools)
		if base, ok := x.tools[key]; ok {
			d.ToolBase, d.Tools = base, nil
		} else {
			x.tools[key] = c.Ordinal
		}
	}
	return d
}

// shrinkIDs walks the prompt once, hashing, and stops at each length where an earlier call ends.
func (x *index) shrinkIDs(c *trajectory.ModelCall, d *doc) {
	if len(c.PromptIDs) == 0 {
		return
	}
	h := sha256.New()
	at := 0
	buf := make([]byte, 0, 4096)
	feed := func(ids []int32) {
		for _, id := range ids {
			if buf = binary.LittleEndian.AppendUint32(buf, uint32(id)); len(buf) == cap(buf) {
				h.Write(buf)
				buf = buf[:0]
			}
		}
		h.Write(buf)
		buf = buf[:0]
	}
	for _, a := range x.ids {
		if a.keep > len(c.PromptIDs) {
			break
		}
		feed(c.PromptIDs[at:a.keep])
		at = a.keep
		var sum [sha256.Size]byte
		if h.Sum(sum[:0]); sum == a.sum {
			d.IDBase, d.IDKeep = a.ordinal, a.keep
		}
	}
	feed(c.PromptIDs[at:])
	d.IDs = c.PromptIDs[d.IDKeep:]
	prompt := anchor{ordinal: c.Ordinal, keep: len(c.PromptIDs)}
	h.Sum(prompt.sum[:0])
	feed(c.OutputIDs)
	whole := anchor{ordinal: c.Ordinal, keep: len(c.PromptIDs) + len(c.OutputIDs)}
	h.Sum(whole.sum[:0])
	x.note(prompt)
	x.note(whole)
}

func (x *index) note(a anchor) {
	if len(x.ids) >= maxAnchors {
		oldest := 0
		for i := range x.ids {
			if x.ids[i].ordinal < x.ids[oldest].ordinal {
				oldest = i
			}
		}
		x.ids = slices.Delete(x.ids, oldest, oldest+1)
	}
	i, _ := slices.BinarySearchFunc(x.ids, a.keep, func(e anchor, keep int) int { return e.keep - keep })
	x.ids = slices.Insert(x.ids, i, a)
}

// shrinkMessages finds the longest list of messages of an earlier call that these begin with.
func (x *index) shrinkMessages(c *trajectory.ModelCall, d *doc) {
	var chain [16]byte
	for i, m := range c.Messages {
		h := sha256.New()
		h.Write(chain[:])
		h.Write(m)
		chain = [16]byte(h.Sum(nil)[:16])
		if a, ok := x.msgs[chain]; ok {
			d.MsgBase, d.MsgKeep = a.ordinal, i+1
		} else {
			x.msgs[chain] = anchor{ordinal: c.Ordinal}
		}
	}
	d.Messages = c.Messages[d.MsgKeep:]
}

func short(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// grow undoes shrink; earlier holds the calls before by ordinal, from 1.
func (d *doc) grow(earlier []*trajectory.ModelCall, ids *idRows) (*trajectory.ModelCall, error) {
	c := d.ModelCall
	c.Logprobs = d.LP
	for _, base := range []int{d.IDBase, d.MsgBase, d.ToolBase} {
		if base < 0 || base > len(earlier) || base >= c.Ordinal && base > 0 {
			return nil, fmt.Errorf("model call %d goes on from call %d, which is not before it", c.Ordinal, base)
		}
	}
	if d.IDBase > 0 {
		from := earlier[d.IDBase-1]
		if d.IDKeep > len(from.PromptIDs)+len(from.OutputIDs) {
			return nil, fmt.Errorf("model call %d keeps %d ids of call %d, which has fewer", c.Ordinal, d.IDKeep, d.IDBase)
		}
	}
	c.PromptIDs, c.OutputIDs = ids.place(d, earlier)
	if d.MsgBase > 0 {
		from := earlier[d.MsgBase-1]
		if d.MsgKeep > len(from.Messages) {
			return nil, fmt.Errorf("model call %d keeps %d messages of call %d, which has fewer", c.Ordinal, d.MsgKeep, d.MsgBase)
		}
		c.Messages = append(slices.Clone(from.Messages[:d.MsgKeep]), d.Messages...)
	}
	if d.ToolBase > 0 {
		c.Tools = earlier[d.ToolBase-1].Tools
	}
	return &c, nil
}

// idRows lays the ids of a rollout's calls out so that a prompt that goes on from a whole earlier call lies
// behind it in the same array: a rollout of k turns then copies its ids once, not k times. Prompts share memory; they
// are read and never written.
type idRows struct {
	row  [][]int32 // by ordinal - 1: prompt and answer
	last map[int]bool
}

// place gives the ids of the call after earlier.
func (x *idRows) place(d *doc, earlier []*trajectory.ModelCall) (prompt, output []int32) {
	var row []int32
	switch {
	case d.IDBase == 0 && len(d.IDs) == 0 && len(d.Out) == 0:
		x.row = append(x.row, nil)
		return d.IDs, d.Out
	case d.IDBase == 0:
		row = append(make([]int32, 0, 2*(len(d.IDs)+len(d.Out))), d.IDs...)
	case d.IDKeep == len(x.row[d.IDBase-1]) && !x.last[d.IDBase]:
		if x.last == nil {
			x.last = map[int]bool{}
		}
		x.last[d.IDBase] = true // the room behind it is taken
		row = append(x.row[d.IDBase-1], d.IDs...)
	default:
		row = append(make([]int32, 0, d.IDKeep+2*(len(d.IDs)+len(d.Out))), x.row[d.IDBase-1][:d.IDKeep]...)
		row = append(row, d.IDs...)
	}
	n := len(row)
	row = append(row, d.Out...)
	x.row = append(x.row, row)
	return row[:n:n], row[n:len(row):len(row)]
}

// ints and nums are arrays as base64 of little-endian bytes: exact, and cheap to read.
type ints []int32

// MarshalJSON gives the array's bytes as text.
func (a ints) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 4*len(a))
	for _, v := range a {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
	}
	return json.Marshal(raw)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *ints) UnmarshalJSON(text []byte) error {
	raw, err := unpack(text, 4)
	*a = make(ints, len(raw)/4)
	for i := range *a {
		(*a)[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return err
}

type nums []float64

// MarshalJSON gives the array's bytes as text.
func (a nums) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 8*len(a))
	for _, v := range a {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return json.Marshal(raw)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *nums) UnmarshalJSON(text []byte) error {
	raw, err := unpack(text, 8)
	*a = make(nums, len(raw)/8)
	for i := range *a {
		(*a)[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return err
}

func unpack(text []byte, size int) ([]byte, error) {
	if len(text) < 2 || text[0] != '"' {
		return nil, fmt.Errorf("a packed array is no text")
	}
	raw, err := base64.StdEncoding.DecodeString(string(text[1 : len(text)-1]))
	if err == nil && len(raw)%size != 0 {
		err = fmt.Errorf("a packed array has %d bytes, no multiple of %d", len(raw), size)
	}
	return raw, err
}
