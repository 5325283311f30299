package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

func ptr(n int) *int { return &n }

var when = time.Unix(1700000000, 12345)

// samples are messages of each type with every field set, and decoders that give them back.
func samples() map[string]struct {
	payload []byte
	want    any
	decode  func([]byte) (any, error)
} {
	type sample = struct {
		payload []byte
		want    any
		decode  func([]byte) (any, error)
	}
	hello := wire.Hello{Version: 3, Init: wire.Init{Workdir: "/w", User: "u:g", Env: []string{"A=1", "B=\xff\n"}, SpillDir: "/s", Hosts: "h\n", Resolv: "r\n"}}
	welcome := wire.Welcome{Version: 1, Shell: "/bin/bash", Resumed: true}
	call := sandbox.Call{ID: "id", Op: sandbox.OpShell, Command: "a\x00b\xff", Timeout: time.Second, Idle: time.Minute, Handle: "bg1",
		Wait: time.Hour, Path: "/p", Text: "t", Old: "o", New: "n", Line: -3, Range: []int{1, -1}, PTY: true, Rows: 3,
		Cols: 4, Keys: []string{"up", "ctrl-c"}}
	result := sandbox.Result{Output: []byte("out\xff"), Exit: ptr(137), TimedOut: true, Truncated: true, Handle: "bg2", OOM: true, Cwd: "/c",
		Started: when, Duration: 5 * time.Millisecond}
	exec := sandbox.Exec{ID: "x", Argv: []string{"a", "", "b c"}, Stdin: []byte{0, 1}, Env: []string{"X=y"}, Dir: "/d", User: "root",
		Timeout: time.Second, Limit: 77}
	execResult := sandbox.ExecResult{Stdout: []byte("o"), Stderr: []byte("e"), Exit: ptr(0), TimedOut: true, Truncated: true, OOM: true, Duration: 3}
	read := wire.ReadFile{Path: "/f", Limit: 1 << 40}
	info := sandbox.FileInfo{Path: "/l", Real: "/r", Mode: fs.ModeDir | 0o755, Size: 1 << 33, UID: 1, GID: 2, Time: when}
	return map[string]sample{
		"hello":        {hello.Encode(), hello, func(b []byte) (any, error) { return wire.DecodeHello(b) }},
		"welcome":      {welcome.Encode(), welcome, func(b []byte) (any, error) { return wire.DecodeWelcome(b) }},
		"call":         {wire.EncodeCall(call), call, func(b []byte) (any, error) { return wire.DecodeCall(b) }},
		"empty call":   {wire.EncodeCall(sandbox.Call{}), sandbox.Call{}, func(b []byte) (any, error) { return wire.DecodeCall(b) }},
		"result":       {wire.EncodeResult(result), result, func(b []byte) (any, error) { return wire.DecodeResult(b) }},
		"empty result": {wire.EncodeResult(sandbox.Result{}), sandbox.Result{}, func(b []byte) (any, error) { return wire.DecodeResult(b) }},
		"exec":         {wire.EncodeExec(exec), exec, func(b []byte) (any, error) { return wire.DecodeExec(b) }},
		"exec result":  {wire.EncodeExecResult(execResult), execResult, func(b []byte) (any, error) { return wire.DecodeExecResult(b) }},
		"read file":    {read.Encode(), read, func(b []byte) (any, error) { return wire.DecodeReadFile(b) }},
		"file info":    {wire.EncodeFileInfo(info), info, func(b []byte) (any, error) { return wire.DecodeFileInfo(b) }},
		"strings":      {wire.EncodeStrings("a", "", "\xff"), []string{"a", "", "\xff"}, func(b []byte) (any, error) { return wire.DecodeStrings(b) }},
		"state":        {wire.EncodeStrings("done"), sandbox.CallDone, func(b []byte) (any, error) { return wire.DecodeState(b) }},
	}
}

// Every message comes back as it was; cut off anywhere, or with a byte more, it is refused.
func TestMessages(t *testing.T) {
	for name, s := range samples() {
		got, err := s.decode(s.payload)
		if err != nil || !cmp.Equal(got, s.want) {
			t.Errorf("%s: %v %s", name, err, cmp.Diff(s.want, got))
		}
		for n := range s.payload {
			if _, err := s.decode(s.payload[:n]); !errors.Is(err, wire.ErrPayload) {
				t.Errorf("%s cut off at %d of %d: %v", name, n, len(s.payload), err)
			}
		}
		if _, err := s.decode(append(bytes.Clone(s.payload), 0)); !errors.Is(err, wire.ErrPayload) {
			t.Errorf("%s with a byte more: %v", name, err)
		}
	}
}

// Every field of the contract's types travels: a new one that is forgotten here fails.
func TestNoFieldForgotten(t *testing.T) {
	for name, s := range samples() {
		v := reflect.ValueOf(s.want)
		if v.Kind() != reflect.Struct || strings.HasPrefix(name, "empty") {
			continue
		}
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s: the sample does not set %s", name, v.Type().Field(i).Name)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	for name, err := range map[string]error{
		"an exit code of 256": second(wire.DecodeResult(wire.EncodeResult(sandbox.Result{Exit: ptr(256)}))),
		"a negative one":      second(wire.DecodeExecResult(wire.EncodeExecResult(sandbox.ExecResult{Exit: ptr(-1)}))),
		"too much output":     second(wire.DecodeResult(wire.EncodeResult(sandbox.Result{Output: make([]byte, 80<<10)}))),
		"three numbers":       second(wire.DecodeCall(wire.EncodeCall(sandbox.Call{Range: []int{1, 2, 3}}))),
		"an unknown state":    second(wire.DecodeState(wire.EncodeStrings("maybe"))),
		"two states":          second(wire.DecodeState(wire.EncodeStrings("done", "done"))),
		"a huge list":         second(wire.DecodeStrings(binary.AppendUvarint(nil, 1<<60))),
		"a huge text":         second(wire.DecodeStrings([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x7f})),
	} {
		if !errors.Is(err, wire.ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestFail(t *testing.T) {
	for _, sentinel := range []error{sandbox.ErrStart, sandbox.ErrNoShell, fs.ErrNotExist, fs.ErrPermission, fs.ErrInvalid, wire.ErrForgotten} {
		err := wire.DecodeFail(wire.EncodeFail(fmt.Errorf("words: %w", sentinel)))
		if !errors.Is(err, sentinel) || !strings.HasPrefix(err.Error(), "words: ") {
			t.Errorf("%v: %v", sentinel, err)
		}
	}
	both := wire.DecodeFail(wire.EncodeFail(fmt.Errorf("%w: %w", sandbox.ErrStart, fs.ErrNotExist)))
	if !errors.Is(both, sandbox.ErrStart) || errors.Is(both, fs.ErrNotExist) {
		t.Errorf("of two sentinels the first says most: %v", both)
	}
	if err := wire.DecodeFail(wire.EncodeFail(errors.New(strings.Repeat("x", 1<<20)))); len(err.Error()) > 8<<10 {
		t.Errorf("%d bytes of words", len(err.Error()))
	}
	for _, b := range [][]byte{nil, {1}, {1, 5, 'x'}, {1, 1, 'x', 'y'}} {
		if err := wire.DecodeFail(b); !errors.Is(err, wire.ErrPayload) {
			t.Errorf("%v: %v", b, err)
		}
	}
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	frames := []wire.Frame{{Kind: wire.KindDo, ID: 1 << 60, Payload: []byte("x")}, {Kind: wire.KindPing, ID: 2}, {Kind: wire.KindReply, Payload: bytes.Repeat([]byte("y"), 300<<10)}}
	for _, f := range frames {
		if err := wire.Write(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range frames {
		got, err := wire.Read(&b, 1<<20)
		if err != nil || got.Kind != want.Kind || got.ID != want.ID || !bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("%d %d %v", got.Kind, got.ID, err)
		}
	}
	if _, err := wire.Read(&b, 1); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for text, want := range map[string]error{"\x00\x00": io.ErrUnexpectedEOF, "\x00\x00\x00\x08": wire.ErrFrame, "\x7f\xff\xff\xff\x01": wire.ErrFrame,
		"\x00\x00\x00\x0a\x01": io.ErrUnexpectedEOF, "\x00\x00\x00\x0a\x0112345678": io.ErrUnexpectedEOF} {
		if _, err := wire.Read(strings.NewReader(text), 1<<20); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

// A length alone does not allocate.
func TestReadAllocatesWithWhatArrives(t *testing.T) {
	res := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = wire.Read(strings.NewReader("\x02\x00\x00\x00\x0112345678abc"), wire.MaxReply)
		}
	})
	if res.AllocedBytesPerOp() > 256<<10 {
		t.Errorf("%d bytes for a frame that never came", res.AllocedBytesPerOp())
	}
}

// FuzzDecode feeds all decoders of both sides. What decodes encodes to the same again.
func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.payload)
	}
	f.Add(wire.EncodeFail(sandbox.ErrStart))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := wire.DecodeCall(b); err == nil {
			if again, err := wire.DecodeCall(wire.EncodeCall(c)); err != nil || !cmp.Equal(c, again) {
				t.Errorf("%v %s", err, cmp.Diff(c, again))
			}
		}
		if r, err := wire.DecodeResult(b); err == nil {
			if again, err := wire.DecodeResult(wire.EncodeResult(r)); err != nil || !cmp.Equal(r, again) {
				t.Errorf("%v %s", err, cmp.Diff(r, again))
			}
		}
		if x, err := wire.DecodeExec(b); err == nil {
			if again, err := wire.DecodeExec(wire.EncodeExec(x)); err != nil || !cmp.Equal(x, again) {
				t.Errorf("%v %s", err, cmp.Diff(x, again))
			}
		}
		if r, err := wire.DecodeExecResult(b); err == nil {
			if again, err := wire.DecodeExecResult(wire.EncodeExecResult(r)); err != nil || !cmp.Equal(r, again) {
				t.Errorf("%v %s", err, cmp.Diff(r, again))
			}
		}
		if h, err := wire.DecodeHello(b); err == nil {
			if again, err := wire.DecodeHello(h.Encode()); err != nil || !cmp.Equal(h, again) {
				t.Errorf("%v %s", err, cmp.Diff(h, again))
			}
		}
		_, _ = wire.DecodeWelcome(b)
		_, _ = wire.DecodeFileInfo(b)
		_, _ = wire.DecodeReadFile(b)
		_, _ = wire.DecodeState(b)
		if err := wire.DecodeFail(b); err == nil {
			t.Error("a failure that is none")
		}
	})
}

// FuzzRead feeds the frame reader.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0a\x01123456789"))
	f.Add([]byte("\x00\x00\x00\x09\x0112345678\x00\x00\x00\x0a\x01123456789"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			fr, err := wire.Read(r, 1<<16)
			if err != nil {
				return
			}
			var again bytes.Buffer
			_ = wire.Write(&again, fr)
			if !bytes.Contains(b, again.Bytes()) {
				t.Errorf("%v is not in %q", fr, b)
			}
		}
	})
}
