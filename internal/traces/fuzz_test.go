package traces

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// fuzzFormat fuzzes the reader of a format: it gives traces of tools that we have, or an *Unknown.
func fuzzFormat(f *testing.F, format string) {
	for _, c := range documents {
		if c.format == format {
			f.Add(c.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(&Document{File: "f", Data: []byte(text)})
		var u *Unknown
		if err != nil && (!errors.As(err, &u) || u.Reason == "" || list != nil) {
			t.Fatalf("%d traces and %v", len(list), err)
		}
		for _, tr := range list {
			if tr.Format == "" || tr.ID == "" {
				t.Errorf("a trace without format or id: %+v", tr)
			}
			for _, c := range tr.Calls {
				if c.Tool == "" && tr.Format != Corpus && tr.Format != Proctor {
					t.Errorf("a call without a tool: %+v", c)
				}
			}
		}
	})
}

func FuzzSWEAgent(f *testing.F)     { fuzzFormat(f, SWEAgent) }
func FuzzMiniSWEAgent(f *testing.F) { fuzzFormat(f, MiniSWEAgent) }
func FuzzOpenHands(f *testing.F)    { fuzzFormat(f, OpenHands) }
func FuzzATIF(f *testing.F)         { fuzzFormat(f, ATIF) }
func FuzzInspect(f *testing.F)      { fuzzFormat(f, Inspect) }
func FuzzOpenAI(f *testing.F)       { fuzzFormat(f, OpenAI) }
func FuzzProctor(f *testing.F)      { fuzzFormat(f, Proctor) }
func FuzzCorpus(f *testing.F)       { fuzzFormat(f, Corpus) }

// FuzzTopLevel holds the cutting of an object to encoding/json: of what is JSON they make the same.
func FuzzTopLevel(f *testing.F) {
	for _, c := range documents {
		f.Add(c.text)
	}
	for _, s := range []string{`{}`, ` { "a\"" : [1, {"b": "]"}] , "a\u0062" : -1e3,"" :null} `, `{"a": 1, "a": 2}`, `{"a" 1}`, `{"a": }`, `{"a": 1,}`, `{"a": "\\"}`, `{"a": 1} x`, `null`, `[]`, "{\"\xff\": 1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want object
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return
		}
		got, err := cutObject([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	})
}

// FuzzElements holds the same of a list.
func FuzzElements(f *testing.F) {
	for _, c := range documents {
		f.Add("[" + c.text + "," + c.text + "]")
	}
	for _, s := range []string{`[]`, ` [ 1 , "a]" , {"b": [null]} ] `, `[1,]`, `[,]`, `[1] 2`, `[[[]]]`, `["\\"]`, `null`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want []json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return
		}
		got, err := cutList([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	})
}

// FuzzSource holds that no byte of a stream is lost silently: there is a document or a word about it.
func FuzzSource(f *testing.F) {
	f.Add("a.jsonl", "{}\n{}\n")
	f.Add("a.json", "{\n}")
	f.Add("-", `{"role": "x"}`+"\n"+`{"role": "y"}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		n := 0
		l := &Source{}
		l.stream(name, strings.NewReader(text), func(*Document, error) bool { n++; return true })
		if n == 0 {
			t.Errorf("%q of %q gives nothing", text, name)
		}
	})
}
