package normalize

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

func pureCall(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "chr", "str", "bytes", "bytearray", "fromhex", "b64decode", "urlsafe_b64decode", "decode64", "atob", "from", "fromCharCode",
		"join", "Join", "concat", "implode", "reverse", "Path", "PurePath", "PosixPath", "map", "reversed", "expanduser", "abspath", "getcwd", "unhexlify", "decode", "String", "list", "int", "strict_decode64",
		"b32decode", "b16decode", "b85decode", "a85decode", "a2b_base64", "a2b_hex", "decode_base64", "base64_decode", "hex2bin", "strrev", "str_rot13",
		"decompress", "inflateSync", "gunzipSync", "gzinflate", "gzuncompress", "gzdecode",
		"unquote", "unquote_plus", "urldecode", "rawurldecode", "decodeURIComponent", "unescape", "uri_unescape", "loads", "parse", "maketrans":
		return true
	}
	return false
}

// apply computes a pure call over constants.
func apply(name string, args []constant, cwd string) (constant, bool) {
	short := name[strings.LastIndexByte(name, '.')+1:]
	first := constant{}
	if len(args) > 0 {
		first = args[0]
	}
	switch short {
	case "getcwd":
		return text(cwd), true
	case "join", "Join":
		if strings.Contains(name, "path") || short == "Join" {
			return joinAll(args)
		}
		return constant{}, false
	case "Path", "PurePath", "PosixPath":
		c, ok := joinAll(args)
		c.path = true
		return c, ok
	}
	if len(args) == 0 {
		return constant{}, false
	}
	switch short {
	case "chr":
		return text(string(rune(first.n))), first.num
	case "str", "String", "list", "expanduser", "abspath":
		return first, true
	case "int":
		return first, first.num
	case "bytes", "bytearray", "fromCharCode", "map":
		list := first
		switch {
		case short == "fromCharCode":
			list = constant{lists: true, list: args}
		case short == "map" && len(args) == 2:
			list = args[1]
		}
		return fromCodes(list)
	case "fromhex", "unhexlify":
		b, err := hex.DecodeString(strings.ReplaceAll(first.s, " ", ""))
		return text(string(b)), err == nil
	case "b64decode", "urlsafe_b64decode", "decode64", "strict_decode64", "atob", "a2b_base64", "decode_base64", "base64_decode":
		return decodeText(first.s, "base64")
	case "strrev":
		return text(reverse(first.s)), !first.num
	case "maketrans":
		return constant{list: args, lists: true}, len(args) == 2
	case "loads", "parse":
		var s string
		err := json.Unmarshal([]byte(first.s), &s)
		return text(s), err == nil && !first.lists && !first.num
	case "from", "decode":
		if len(args) == 2 {
			return decodeText(first.s, args[1].s)
		}
		return first, short == "from"
	case "reversed", "reverse":
		return text(reverse(first.s)), !first.num && !first.lists
	}
	return unpack(short, first)
}

// unpack computes the calls that undo an encoding or a compression.
func unpack(name string, c constant) (constant, bool) {
	if c.num || c.lists {
		return constant{}, false
	}
	switch name {
	case "b16decode", "a2b_hex", "hex2bin":
		return decodeText(c.s, "hex")
	case "b32decode":
		return decodeText(c.s, "base32")
	case "b85decode", "a85decode":
		s, ok := base85(c.s, name == "a85decode")
		return text(s), ok
	case "str_rot13":
		return text(rot13(c.s)), true
	case "decompress", "inflateSync", "gunzipSync", "gzuncompress", "gzdecode", "gzinflate":
		v := inflate(c.s)
		return text(v.s), v.known
	case "unquote", "urldecode", "rawurldecode", "decodeURIComponent", "unescape", "uri_unescape", "unquote_plus":
		s, ok := urlDecoded(c.s, name == "unquote_plus" || name == "urldecode")
		return text(s), ok
	}
	return constant{}, false
}

func joinAll(args []constant) (constant, bool) {
	out := ""
	for i, a := range args {
		if a.num || a.lists {
			return constant{}, false
		}
		if i == 0 {
			out = a.s
		} else {
			out = joinPath(out, a.s)
		}
	}
	return text(out), len(args) > 0
}

func fromCodes(list constant) (constant, bool) {
	if !list.lists {
		return list, !list.num
	}
	var b strings.Builder
	for _, e := range list.list {
		if !e.num {
			b.WriteString(e.s)
			continue
		}
		b.WriteRune(rune(e.n))
	}
	return text(b.String()), true
}

func decodeText(s, how string) (constant, bool) {
	switch strings.ToLower(codecSeparators.Replace(how)) {
	case "base64", "b64":
		b, ok := unbase64(s)
		return text(string(b)), ok
	case "hex":
		b, err := hex.DecodeString(s)
		return text(string(b)), err == nil
	case "base32":
		b, err := base32.StdEncoding.DecodeString(strings.ToUpper(s))
		return text(string(b)), err == nil
	case "zlib", "bz2", "zip":
		v := inflate(s)
		return text(v.s), v.known
	case "rot13":
		return text(rot13(s)), true
	case "utf8", "ascii", "latin1":
		return text(s), true
	}
	return constant{}, false
}

// codecSeparators are what Python's names of codecs leave out: utf-8, utf_8.
var codecSeparators = strings.NewReplacer("-", "", "_", "")

func unbase64(s string) ([]byte, bool) {
	if strings.ContainsAny(s, " \t\n\r\v\f") {
		s = strings.Join(strings.Fields(s), "")
	}
	if len(s) > 0 && !base64Byte(s[0]) {
		return nil, false
	}
	for _, enc := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(s); err == nil {
			return b, true
		}
	}
	return nil, false
}

func base64Byte(c byte) bool {
	return isWordByte(c) || c == '+' || c == '/' || c == '-' || c == '='
}

func rot13(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, s)
}

func reverse(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}
