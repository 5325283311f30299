// Package canary makes random tokens for honeypot files and finds them again, plain or disguised:
// where one shows in output, in a written file or in a patch, the file was read, whatever the
// command looked like.
package canary

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Forms in which a token was found, as evidence names them.
const (
	Plain    = "plain"
	Reversed = "reversed"
	Hex      = "hex"
	Base64   = "base64"
	Cased    = "case-changed"
	Split    = "split"
)

// Sighting is one token in one form.
type Sighting struct {
	Token string
	Form  string
}

// String gives the sighting as evidence: "canary <token>: <form>".
func (s Sighting) String() string { return "canary " + s.Token + ": " + s.Form }

// New gives a token: 96 random bits as 24 hex digits, which no honest text holds by chance (2^-96
// for each place) and which looks like any checksum.
func New() (string, error) {
	var b [12]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("canary: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// Detector looks for a set of tokens. It is made once a rollout, and is safe for concurrent use.
type Detector struct {
	needles []needle
	tokens  []string
}

type needle struct {
	text string
	Sighting
}

// NewDetector gives a detector for tokens of at least 12 letters and digits; shorter ones would be
// found by chance, and are an error.
func NewDetector(tokens ...string) (*Detector, error) {
	d := &Detector{}
	for _, t := range tokens {
		if len(t) < 12 || strings.Trim(strings.ToLower(t), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return nil, fmt.Errorf("canary %q: want at least 12 letters and digits", t)
		}
		d.tokens = append(d.tokens, t)
		d.needles = append(d.needles, needlesOf(t)...)
	}
	return d, nil
}

// needlesOf gives the forms of a text that are looked for, plain first.
func needlesOf(t string) []needle {
	out := []needle{
		{t, Sighting{t, Plain}}, {reversed(t), Sighting{t, Reversed}},
		{hex.EncodeToString([]byte(t)), Sighting{t, Hex}}, {hex.EncodeToString([]byte(reversed(t))), Sighting{t, Hex}},
	}
	for _, core := range base64Cores(t) {
		out = append(out, needle{core, Sighting{t, Base64}})
	}
	return out
}

// Find gives what of the tokens is in text, each token and form once. It reads text twice and
// allocates in proportion to it; callers bound text.
func (d *Detector) Find(text string) []Sighting {
	var out []Sighting
	add := func(s Sighting) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, n := range d.needles {
		if strings.Contains(text, n.text) {
			add(n.Sighting)
		}
	}
	lower := strings.ToLower(text)
	bare := onlyWord(lower)
	for _, t := range d.tokens {
		low := strings.ToLower(t)
		found := slices.ContainsFunc(out, func(s Sighting) bool { return s.Token == t })
		switch {
		case found:
		case strings.Contains(lower, low), strings.Contains(lower, hex.EncodeToString([]byte(t))):
			add(Sighting{t, Cased})
		case strings.Contains(bare, low), strings.Contains(bare, reversed(low)):
			add(Sighting{t, Split})
		}
	}
	return out
}

// onlyWord drops all but letters and digits, so that a token cut by spaces, quotes, newlines or
// separators is whole again.
func onlyWord(lower string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, lower)
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// base64Cores gives what base64 makes of t at each of the three alignments, without the characters
// at the ends that depend on the neighbours; what is left stands in the encoding of any text that
// holds t. Letters and digits encode alike in the standard and the URL alphabet.
func base64Cores(t string) []string {
	var out []string
	for lead := range 3 {
		enc := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", lead) + t))
		from := (lead*8 + 5) / 6
		to := (lead + len(t)) * 8 / 6
		out = append(out, enc[from:to])
	}
	return out
}
