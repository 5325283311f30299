package normalize

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"strings"

	"github.com/ulikunitz/xz"
)

// transform computes what a decoder or filter prints for an input that is known.
func transform(name string, words []string, s string) val {
	has := func(names ...string) bool {
		for _, w := range words {
			for _, n := range names {
				if w == n || len(n) == 2 && len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w[1:], n[1:]) {
					return true
				}
			}
		}
		return false
	}
	decode := has("-d", "--decode", "-D", "--decompress", "--uncompress")
	switch name {
	case "base64":
		if decode {
			b, ok := unbase64(s)
			return val{clip(string(b), maxValue), ok}
		}
		return known(base64.StdEncoding.EncodeToString([]byte(s)) + "\n")
	case "base32":
		if decode {
			c, ok := decodeText(strings.Join(strings.Fields(s), ""), "base32")
			return val{c.s, ok}
		}
		return known(base32.StdEncoding.EncodeToString([]byte(s)) + "\n")
	case "openssl":
		return opensslText(words, s)
	case "xxd":
		return xxd(has, s)
	case "rot13":
		return known(rot13(s))
	case "rev":
		lines := strings.Split(s, "\n")
		for i := range lines {
			lines[i] = reverse(lines[i])
		}
		return known(strings.Join(lines, "\n"))
	case "tr":
		return tr(words, s)
	case "gunzip", "zcat", "unxz", "xzcat", "bunzip2", "bzcat":
		return inflate(s)
	case "gzip", "xz", "bzip2":
		if decode {
			return inflate(s)
		}
		// Packed text is unpacked again or never read: its bytes need not be this program's own.
		return deflate(s)
	case "uudecode":
		return uudecode(s)
	case "sed":
		return sedText(words, s)
	}
	return filter(name, words, s)
}

// opensslText is openssl base64 -d and openssl enc -d -base64 or -a, without a cipher.
func opensslText(words []string, s string) val {
	decode, text := false, false
	for _, w := range words {
		switch w {
		case "-d":
			decode = true
		case "base64", "-base64", "-a":
			text = true
		case "enc", "-A", "-in":
		default:
			if strings.HasPrefix(w, "-") {
				return val{}
			}
		}
	}
	if !text || !decode {
		return val{}
	}
	b, ok := unbase64(s)
	return val{clip(string(b), maxValue), ok}
}

// xxd dumps, plainly or with offsets and text beside it, and reads such dumps.
func xxd(has func(...string) bool, s string) val {
	plain := has("-p", "-ps", "-plain")
	if !has("-r") {
		if plain {
			return known(hex.EncodeToString([]byte(clip(s, maxValue/4))) + "\n")
		}
		return known(hexDump(clip(s, maxValue/8)))
	}
	var b strings.Builder
	for _, line := range strings.Split(s, "\n") {
		if _, rest, ok := strings.Cut(line, ":"); ok && !plain {
			line, _, _ = strings.Cut(strings.TrimLeft(rest, " "), "  ")
		}
		for _, w := range strings.Fields(line) {
			b.WriteString(w)
		}
	}
	out, err := hex.DecodeString(b.String())
	return val{string(out), err == nil}
}

func hexDump(s string) string {
	var b strings.Builder
	for at := 0; at < len(s); at += 16 {
		line := s[at:min(at+16, len(s))]
		fmt.Fprintf(&b, "%08x: ", at)
		for i := 0; i < len(line); i += 2 {
			fmt.Fprintf(&b, "%x ", line[i:min(i+2, len(line))])
		}
		b.WriteString(" .\n")
	}
	return b.String()
}

// inflate unpacks gzip, zlib, bzip2 or xz data, at most maxValue bytes of it.
func inflate(s string) val {
	var rd io.Reader
	var err error
	switch {
	case strings.HasPrefix(s, "BZh"):
		rd = bzip2.NewReader(strings.NewReader(s))
	case strings.HasPrefix(s, "\xfd7zXZ\x00"):
		rd, err = smallXZ(s)
	default:
		if rd, err = gzip.NewReader(strings.NewReader(s)); err != nil {
			rd, err = zlib.NewReader(strings.NewReader(s))
		}
	}
	if err != nil {
		return val{}
	}
	b, err := io.ReadAll(io.LimitReader(rd, maxValue))
	return val{string(b), err == nil}
}

// smallXZ opens xz data with a dictionary of 64 KiB, whatever its header asks for: no more than that is
// unpacked, so that nothing further back can be referred to. Only the plain form of a block header, which
// every packer writes for a stream, is read.
func smallXZ(s string) (io.Reader, error) {
	const dictionary64K = 8
	b := []byte(s)
	if len(b) < 28 || b[12] != 2 || b[13] != 0 || b[14] != 0x21 || b[15] != 1 {
		return nil, fmt.Errorf("xz: a block header that is not read")
	}
	b[16] = min(b[16], dictionary64K)
	binary.LittleEndian.PutUint32(b[20:], crc32.ChecksumIEEE(b[12:20]))
	return xz.ReaderConfig{DictCap: maxValue}.NewReader(bytes.NewReader(b))
}

func deflate(s string) val {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil || w.Close() != nil {
		return val{}
	}
	return val{b.String(), b.Len() < maxValue}
}

// uudecode reads what stands between begin and end; begin-base64 too.
func uudecode(s string) val {
	var out strings.Builder
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "begin-base64 ") {
			body, _, _ := strings.Cut(strings.Join(lines[i+1:], "\n"), "====")
			b, ok := unbase64(body)
			return val{clip(string(b), maxValue), ok}
		}
		if !strings.HasPrefix(line, "begin ") {
			continue
		}
		for _, l := range lines[i+1:] {
			if l == "end" || l == "" {
				break
			}
			n, body := int((l[0]-' ')&63), l[1:]
			var bits []byte
			for j := 0; j+3 < len(body); j += 4 {
				v := uint32((body[j]-' ')&63)<<18 | uint32((body[j+1]-' ')&63)<<12 | uint32((body[j+2]-' ')&63)<<6 | uint32((body[j+3]-' ')&63)
				bits = append(bits, byte(v>>16), byte(v>>8), byte(v))
			}
			out.Write(bits[:min(n, len(bits))])
		}
		return known(out.String())
	}
	return val{}
}

// base85 decodes Python's b85 alphabet, or Adobe's.
func base85(s string, adobe bool) (string, bool) {
	if !adobe {
		const python = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
		b := []byte(s)
		for i := range b {
			k := strings.IndexByte(python, b[i])
			if k < 0 {
				return "", false
			}
			b[i] = byte('!' + k)
		}
		s = string(b)
	}
	out := make([]byte, len(s)+8)
	n, _, err := ascii85.Decode(out, []byte(strings.TrimSuffix(strings.TrimPrefix(s, "<~"), "~>")), true)
	return string(out[:n]), err == nil
}

func urlDecoded(s string, plus bool) (string, bool) {
	if plus {
		out, err := url.QueryUnescape(s)
		return out, err == nil
	}
	out, err := url.PathUnescape(s)
	return out, err == nil
}
