package gitobj

import (
	"fmt"
	"strings"
)

// Setting is one setting of a git configuration.
type Setting struct {
	Section    string // lower case
	Subsection string // as written
	Key        string // lower case
	Value      string // unquoted; "true" where the key stands alone
}

// Name is section.key in lower case, the subsection left out.
func (s Setting) Name() string { return s.Section + "." + s.Key }

// ParseConfig reads a git configuration file. It reads no include.
func ParseConfig(data []byte) ([]Setting, error) {
	p := &configParser{text: strings.ReplaceAll(string(data), "\r\n", "\n")}
	p.text = strings.TrimPrefix(p.text, "\ufeff")
	var settings []Setting
	var section, subsection string
	for {
		p.space()
		if p.at >= len(p.text) {
			return settings, nil
		}
		if p.text[p.at] == '[' {
			var ok bool
			if section, subsection, ok = p.header(); !ok {
				return nil, fmt.Errorf("configuration: broken section at byte %d", p.at)
			}
			continue
		}
		key, value, ok := p.setting()
		if !ok || section == "" {
			return nil, fmt.Errorf("configuration: broken setting at byte %d", p.at)
		}
		settings = append(settings, Setting{section, subsection, key, value})
	}
}

type configParser struct {
	text string
	at   int
}

// space passes over blanks, line ends and comments.
func (p *configParser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		case '#', ';':
			p.line()
		default:
			return
		}
	}
}

func (p *configParser) line() {
	if i := strings.IndexByte(p.text[p.at:], '\n'); i >= 0 {
		p.at += i + 1
	} else {
		p.at = len(p.text)
	}
}

// header reads [section], [section "subsection"] and the old [section.subsection].
func (p *configParser) header() (section, subsection string, ok bool) {
	p.at++
	start := p.at
	for p.at < len(p.text) && (nameByte(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	section = strings.ToLower(p.text[start:p.at])
	if before, after, dotted := strings.Cut(section, "."); dotted {
		section, subsection = before, after
	}
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == '"' {
		if subsection, ok = p.quoted(); !ok {
			return "", "", false
		}
	}
	if p.at >= len(p.text) || p.text[p.at] != ']' || section == "" {
		return "", "", false
	}
	p.at++
	return section, subsection, true
}

func (p *configParser) quoted() (string, bool) {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			return b.String(), true
		case '\n':
			return "", false
		case '\\':
			p.at++
			if p.at >= len(p.text) || p.text[p.at] == '\n' {
				return "", false
			}
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

func (p *configParser) setting() (key, value string, ok bool) {
	start := p.at
	for p.at < len(p.text) && nameByte(p.text[p.at]) {
		p.at++
	}
	key = strings.ToLower(p.text[start:p.at])
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	switch {
	case key == "":
		return "", "", false
	case p.at >= len(p.text) || strings.IndexByte("\n#;", p.text[p.at]) >= 0:
		return key, "true", true
	case p.text[p.at] != '=':
		return "", "", false
	}
	p.at++
	value, ok = p.value()
	return key, value, ok
}

// value reads to the end of the line: quotes, escapes, continued lines and comments as git does.
func (p *configParser) value() (string, bool) {
	var b strings.Builder
	inQuotes, kept := false, 0 // kept: how much of b is not trailing blanks
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '\n':
			p.at++
			return b.String()[:kept], !inQuotes
		case !inQuotes && (c == '#' || c == ';'):
			p.line()
			return b.String()[:kept], true
		case c == '"':
			inQuotes = !inQuotes
			kept = b.Len()
		case c == '\\':
			p.at++
			if p.at >= len(p.text) {
				return "", false
			}
			switch e := p.text[p.at]; e {
			case '\n':
				continue
			case 'n', 't', 'b':
				b.WriteByte(map[byte]byte{'n': '\n', 't': '\t', 'b': '\b'}[e])
			case '"', '\\':
				b.WriteByte(e)
			default:
				return "", false
			}
			kept = b.Len()
		case !inQuotes && (c == ' ' || c == '\t'):
			if b.Len() > 0 {
				b.WriteByte(c)
			}
		default:
			b.WriteByte(c)
			kept = b.Len()
		}
	}
	return b.String()[:kept], !inQuotes
}

// FormatConfig writes settings so that git and ParseConfig read them back.
func FormatConfig(settings []Setting) []byte {
	var b strings.Builder
	last := ""
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, s := range settings {
		header := "[" + s.Section + "]"
		if s.Subsection != "" {
			header = "[" + s.Section + ` "` + escape.Replace(s.Subsection) + `"]`
		}
		if header != last {
			b.WriteString(header + "\n")
			last = header
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s.Value)
		b.WriteString("\t" + s.Key + " = \"" + value + "\"\n")
	}
	return []byte(b.String())
}
