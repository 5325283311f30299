package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// named are the keys with a name of their own, as xterm sends them. What begins with ESC [ and is in cursorKeys is
// sent as ESC O where a program has asked for that.
var named = map[string]string{
	"enter": "\r", "tab": "\t", "esc": "\x1b", "space": " ", "backspace": "\x7f", "shift-tab": "\x1b[Z",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	"insert": "\x1b[2~", "delete": "\x1b[3~", "pageup": "\x1b[5~", "pagedown": "\x1b[6~",
	"f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
	"f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}

// cursorKeys are those that follow a terminal's cursor key mode.
const cursorKeys = "up down right left home end"

// keyLimit is how many keys one call may press.
const keyLimit = 256

// KeyBytes gives what a terminal sends for a key: a name of KeyNames, one character, or "ctrl-" or "alt-" and one of
// those. Case does not matter, but for a single character. application is the cursor key mode that full-screen
// programs switch on.
func KeyBytes(key string, application bool) (string, error) {
	if utf8.RuneCountInString(key) == 1 && key[0] >= ' ' {
		return key, nil
	}
	name := strings.ToLower(key)
	if rest, ok := strings.CutPrefix(name, "alt-"); ok {
		if utf8.RuneCountInString(rest) == 1 {
			rest = key[len("alt-"):]
		}
		text, err := KeyBytes(rest, application)
		return "\x1b" + text, err
	}
	if c, ok := strings.CutPrefix(name, "ctrl-"); ok {
		return control(key, c)
	}
	text, ok := named[name]
	if !ok {
		return "", fmt.Errorf("unknown key %.32q; the keys are %s, one character, and ctrl- or alt- before one", key, strings.Join(KeyNames(), ", "))
	}
	if application && slices.Contains(strings.Fields(cursorKeys), name) {
		text = strings.Replace(text, "[", "O", 1)
	}
	return text, nil
}

// control gives the byte of a character with the control key held.
func control(key, c string) (string, error) {
	switch {
	case c == "space" || c == "@":
		return "\x00", nil
	case c == "?":
		return "\x7f", nil
	case len(c) == 1 && (c[0] >= 'a' && c[0] <= 'z' || strings.Contains(`[\]^_`, c)):
		return string(strings.ToUpper(c)[0] & 0x1f), nil
	}
	return "", fmt.Errorf("unknown key %.32q; ctrl- goes before a letter, space or one of [ \\ ] ^ _", key)
}

// KeyNames lists the keys that have names, in order.
func KeyNames() []string { return slices.Sorted(maps.Keys(named)) }

// KeyText gives what a terminal sends for keys, in the plain cursor key mode.
func KeyText(keys []string) (string, error) {
	if len(keys) > keyLimit {
		return "", fmt.Errorf("%d keys, at most %d at once", len(keys), keyLimit)
	}
	var b strings.Builder
	for _, key := range keys {
		text, err := KeyBytes(key, false)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
