package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// quote writes text as one word. The blank before it keeps a leading dash from being an option of eval.
func quote(b *strings.Builder, text string) {
	b.WriteString("' ")
	b.WriteString(strings.ReplaceAll(text, "'", `'\''`))
	b.WriteString("'")
}

// touchy are variables that steer how a shell starts. A new shell gets them only once it runs.
var touchy = map[string]bool{"BASH_ENV": true, "ENV": true, "SHELLOPTS": true, "BASHOPTS": true, "POSIXLY_CORRECT": true,
	"BASH_XTRACEFD": true, "PS4": true, "FUNCNEST": true, "BASH_COMPAT": true}

// kept are the touchy ones that a new shell gets back; the others would change it into what had to be replaced.
var kept = map[string]bool{"BASH_ENV": true, "ENV": true, "PS4": true, "BASH_COMPAT": true}

// startEnv is the environment that a shell can start with. SHLVL is kept from counting our shells.
func startEnv(env []string) []string {
	start := make([]string, 0, len(env)+1)
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !touchy[name] && name != "SHLVL" && name != "_" && name != "PWD" {
			start = append(start, entry)
		}
	}
	return append(start, "SHLVL=0")
}

// restore gives the lines that export what startEnv left out.
func restore(env []string) string {
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if kept[name] {
			fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
		}
	}
	return b.String()
}

// parseExports reads what `export -p` prints, in bash (declare -x NAME="value", or export where posix
// mode is on) and in other shells (export NAME='value'), into KEY=value. Names without a value are
// left out: they are not in the environment. What cannot be read is an error.
func parseExports(text string) ([]string, error) {
	var env []string
	for i := 0; i < len(text); {
		for _, word := range []string{"declare -", "typeset -", "export "} {
			if strings.HasPrefix(text[i:], word) {
				i += len(word)
				break
			}
		}
		if i > 0 && text[i-1] == '-' { // the attributes
			j := strings.IndexByte(text[i:], ' ')
			if j < 0 {
				return nil, errors.New("exports: attributes without a name")
			}
			i += j + 1
		}
		j := strings.IndexAny(text[i:], "=\n")
		if j < 0 {
			return nil, errors.New("exports: a name without an end")
		}
		name := text[i : i+j]
		if !isName(name) {
			return nil, fmt.Errorf("exports: %q is no name", name)
		}
		i += j + 1
		if text[i-1] == '\n' {
			continue
		}
		value, n, err := unquote(text[i:])
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+value)
		i += n
	}
	return env, nil
}

func isName(name string) bool {
	for i, c := range []byte(name) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// unquote reads a shell word to the end of its line: parts in ”, "", $” or bare. n counts the line's
// end too.
func unquote(text string) (value string, n int, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return b.String(), i + 1, nil
		case c == '\'':
			j := strings.IndexByte(text[i+1:], '\'')
			if j < 0 {
				return "", 0, errors.New("exports: an open quote")
			}
			b.WriteString(text[i+1 : i+1+j])
			i += j + 1
		case c == '"':
			if i, err = doubleQuoted(&b, text, i+1); err != nil {
				return "", 0, err
			}
		case c == '$' && strings.HasPrefix(text[i:], "$'"):
			if i, err = ansiQuoted(&b, text, i+2); err != nil {
				return "", 0, err
			}
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), len(text), nil
}

// doubleQuoted gives the index of the closing quote.
func doubleQuoted(b *strings.Builder, text string, i int) (int, error) {
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i, nil
		case c == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0:
			i++
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return i, errors.New("exports: an open double quote")
}

var ansiEscapes = map[byte]byte{'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?'}

// ansiQuoted reads the inside of $'...', as bash writes it for control bytes; it gives the index of the
// closing quote.
func ansiQuoted(b *strings.Builder, text string, i int) (int, error) {
	for ; i < len(text); i++ {
		c := text[i]
		if c == '\'' {
			return i, nil
		}
		if c != '\\' || i+1 >= len(text) {
			b.WriteByte(c)
			continue
		}
		i++
		if plain, ok := ansiEscapes[text[i]]; ok {
			b.WriteByte(plain)
			continue
		}
		j := i
		for j < len(text) && j < i+3 && text[j] >= '0' && text[j] <= '7' {
			j++
		}
		v, err := strconv.ParseUint(text[i:j], 8, 16)
		if err != nil {
			return i, errors.New("exports: an unknown escape")
		}
		b.WriteByte(byte(v))
		i = j - 1
	}
	return i, errors.New("exports: an open quote")
}
