package wire

import (
	"errors"
	"fmt"
	"io/fs"

	"proctor/sandbox"
)

// Code says which error a Fail stands for.
type Code byte

// The codes. Appended to, never renumbered.
const (
	CodeInternal   Code = 0 // no sentinel
	CodeStart      Code = 1 // sandbox.ErrStart
	CodeNoShell    Code = 2 // sandbox.ErrNoShell
	CodeNotExist   Code = 3 // fs.ErrNotExist
	CodePermission Code = 4 // fs.ErrPermission
	CodeInvalid    Code = 5 // fs.ErrInvalid
	CodeForgotten  Code = 6 // ErrForgotten
)

// ErrForgotten says that a call was made and ended, and that its result is no longer kept.
var ErrForgotten = errors.New("the call's result is no longer kept")

// sentinels are in order of precedence: an error may wrap several, and the first says most.
var sentinels = []struct {
	code Code
	err  error
}{
	{CodeNoShell, sandbox.ErrNoShell},
	{CodeStart, sandbox.ErrStart},
	{CodeForgotten, ErrForgotten},
	{CodeNotExist, fs.ErrNotExist},
	{CodePermission, fs.ErrPermission},
	{CodeInvalid, fs.ErrInvalid},
}

// maxWords bounds the text of an error that comes out of a sandbox, in bytes.
const maxWords = 4 << 10

// EncodeFail gives the payload of a KindFail for err.
func EncodeFail(err error) []byte {
	code := CodeInternal
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			code = s.code
			break
		}
	}
	words := err.Error()
	e := encoder{b: []byte{byte(code)}}
	e.string(words[:min(len(words), maxWords)])
	return e.b
}

// DecodeFail gives the error that a KindFail stands for; it wraps the sentinel of its code. An
// unreadable payload gives ErrPayload.
func DecodeFail(b []byte) error {
	if len(b) == 0 {
		return ErrPayload
	}
	d := decoder{b: b[1:]}
	words := d.string()
	if err := d.done(); err != nil {
		return err
	}
	words = words[:min(len(words), maxWords)]
	for _, s := range sentinels {
		if s.code == Code(b[0]) {
			return &failure{s.err, words}
		}
	}
	return fmt.Errorf("box agent: %q", words)
}

// failure keeps the agent's words, which name the sentinel already.
type failure struct {
	sentinel error
	words    string
}

func (f *failure) Error() string { return f.words }
func (f *failure) Unwrap() error { return f.sentinel }
