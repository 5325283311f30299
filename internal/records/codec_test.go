package records

import (
	"encoding/json"
	"reflect"
	"testing"

	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

func newTestCodec(t testing.TB) *codec {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// odd are calls with what JSON writes in several ways.
func odd() []*trajectory.ModelCall {
	return []*trajectory.ModelCall{
		{Ordinal: 1},
		{Ordinal: 2, Messages: []json.RawMessage{}, Output: json.RawMessage(`{"role": "assistant", "content": "<a> & \u2028 é"}`)},
		{Ordinal: 3, Messages: []json.RawMessage{json.RawMessage("{ \"role\" : \"user\",\n \"content\": \"\u2028<b>\" }")}, Tools: json.RawMessage(` [ ] `),
			PromptIDs: []int32{-1, 1 << 30}, OutputIDs: []int32{7}, Logprobs: []float64{-1e-300}},
	}
}

// The binary form comes back as the JSON that was stored before it, byte for byte in every message.
func TestBinaryFormIsTheJSONForm(t *testing.T) {
	c := newTestCodec(t)
	plays := [][]*trajectory.ModelCall{odd()}
	for seed := range uint64(10) {
		plays = append(plays, trajtest.Random(seed, 12).Calls)
	}
	for n, calls := range plays {
		x := newIndex()
		for _, call := range calls {
			d := x.shrink(call)
			old, err := c.pack(d)
			if err != nil {
				t.Fatal(err)
			}
			packed, err := c.packCall(&d)
			if err != nil {
				t.Fatal(err)
			}
			var before, after doc
			if err := c.unpackCall(old, &before); err != nil {
				t.Fatalf("the form of the first version: %v", err)
			}
			if err := c.unpackCall(packed, &after); err != nil {
				t.Fatal(err)
			}
			for _, list := range []*ints{&before.IDs, &before.Out} { // [] and null are one to every reader
				if len(*list) == 0 {
					*list = nil
				}
			}
			if len(before.LP) == 0 {
				before.LP = nil
			}
			if !reflect.DeepEqual(before, after) {
				t.Fatalf("play %d, call %d: the binary form gives\n%+v\nthe JSON form\n%+v", n, call.Ordinal, after, before)
			}
		}
	}
}

// What is cut off or made up is an error, and never a panic or a call that asks for all memory.
func FuzzUnpackCall(f *testing.F) {
	c := newTestCodec(f)
	x := newIndex()
	for _, call := range append(odd(), trajtest.Random(3, 6).Calls...) {
		d := x.shrink(call)
		packed, err := c.packCall(&d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
		f.Add(packed[:len(packed)/2])
	}
	f.Add([]byte{binaryForm, 2, '{', '}', 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var d doc
		if err := c.unpackCall(data, &d); err == nil && len(data) > 0 && data[0] == binaryForm {
			if n := 4*len(d.IDs) + 4*len(d.Out) + 8*len(d.LP) + len(d.Messages); n > len(data) {
				t.Errorf("%d bytes of numbers and messages come out of %d", n, len(data))
			}
		}
	})
}

func TestCutOffCall(t *testing.T) {
	c := newTestCodec(t)
	d := newIndex().shrink(trajtest.Random(1, 3).Calls[0])
	packed, err := c.packCall(&d)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(packed); n++ {
		var got doc
		if c.unpackCall(packed[:n], &got) == nil {
			t.Fatalf("%d of %d bytes unpack", n, len(packed))
		}
	}
	var got doc
	if c.unpackCall(append(packed, 0), &got) == nil {
		t.Error("a byte more unpacks")
	}
}
