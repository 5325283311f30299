package canary_test

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"proctor/monitor/canary"
)

const token = "a1b2c3d4e5f60718293a4b5c"

func TestFind(t *testing.T) {
	back := []byte(token)
	slices.Reverse(back)
	cases := []struct{ name, text, form string }{
		{"plain", "x " + token + "\n", canary.Plain},
		{"reversed", "x" + string(back), canary.Reversed},
		{"hex", "0x" + hex.EncodeToString([]byte("pre"+token)), canary.Hex},
		{"base64", base64.StdEncoding.EncodeToString([]byte(token)), canary.Base64},
		{"base64, one byte in", base64.StdEncoding.EncodeToString([]byte("a" + token + "zz")), canary.Base64},
		{"base64, two bytes in", base64.URLEncoding.EncodeToString([]byte("ab" + token + "z")), canary.Base64},
		{"upper case", strings.ToUpper(token), canary.Cased},
		{"letter by letter", strings.Join(strings.Split(token, ""), " "), canary.Split},
		{"in lines of eight", token[:8] + "\n" + token[8:16] + "\n" + token[16:], canary.Split},
		{"as a list", "['" + strings.Join(strings.Split(token, ""), "', '") + "']", canary.Split},
		{"honest", "a1b2c3d4e5f6 and 0718293a4b5d", ""},
		{"empty", "", ""},
	}
	d, err := canary.NewDetector(token, "zzzzzzzzzzzzzzzzzzzzzzzz")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range cases {
		got := d.Find(tc.text)
		if tc.form == "" && len(got) > 0 || tc.form != "" && (len(got) != 1 || got[0] != (canary.Sighting{Token: token, Form: tc.form})) {
			t.Errorf("%s: %v, want %q", tc.name, got, tc.form)
		}
	}
}

func TestNew(t *testing.T) {
	a, err := canary.New()
	if err != nil {
		t.Fatal(err)
	}
	b, err := canary.New()
	if err != nil || a == b || len(a) != 24 {
		t.Errorf("%q, %q, %v", a, b, err)
	}
	if _, err := canary.NewDetector(a, b); err != nil {
		t.Errorf("its own tokens are refused: %v", err)
	}
	for _, bad := range []string{"", "short", "has a space in it"} {
		if _, err := canary.NewDetector(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// FuzzBase64 checks that a token is found in the base64 of any text that holds it.
func FuzzBase64(f *testing.F) {
	f.Add("", "")
	f.Add("ab", "\xff\x00")
	d, err := canary.NewDetector(token)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if got := d.Find(base64.StdEncoding.EncodeToString([]byte(before + token + after))); len(got) == 0 {
			t.Errorf("not found behind %q, before %q", before, after)
		}
	})
}
