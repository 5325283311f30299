package decoy

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"proctor/sandbox"
)

// Absent siblings: the best wording is the program's own. The same program is run, by the harness
// and outside the agent's shell, on a name that does not exist but is just as long and has the same
// odd characters; in what it says, the name is then put back.

// probeTimeout bounds a run for wording, packageTimeout one of a package manager, which retries.
const (
	probeTimeout   = 5 * time.Second
	packageTimeout = 45 * time.Second
	probeLimit     = 256 << 10 // bytes kept of each stream
)

// askable are the programs that may be run on an absent sibling: they do to the other operands what
// the agent asked for anyway, and nothing else.
var askable = []string{
	"cat", "head", "tail", "more", "less", "sed", "awk", "mawk", "gawk", "grep", "egrep", "fgrep", "rg", "ls", "cp", "mv", "ln",
	"find", "stat", "wc", "du", "file", "diff", "cmp", "sort", "tac", "nl", "od", "xxd", "base64", "cut", "paste", "uniq",
	"md5sum", "sha1sum", "sha256sum", "cksum", "strings", "jq", "zcat", "tree", "readlink", "tar",
}

// sibling asks the program itself. False where it cannot be asked.
func (m *Maker) sibling(ctx context.Context, req Request, t *target) (reply, bool) {
	names := spelled(req, t)
	if m.run == nil || len(names) == 0 || !slices.Contains(askable, t.cmd.Program) || t.cmd.Opaque ||
		t.cmd.Stdin != "" || slices.Contains(t.cmd.Args, "-") {
		return reply{}, false
	}
	back := map[string]string{}
	argv := []string{t.cmd.Program}
	for _, a := range t.cmd.Args {
		for _, n := range names {
			if a == n {
				a = m.absent(n)
				back[a] = n
				break
			}
		}
		argv = append(argv, a)
	}
	if len(back) == 0 {
		return reply{}, false
	}
	r, ok := m.ask(ctx, dirAt(&req.Event, t.index), argv, probeTimeout, back)
	if !ok || r.exit == 127 || r.exit == 0 && !slices.Contains([]string{"file", "less", "more"}, t.cmd.Program) {
		return reply{}, false // it did not fail: whatever it said is not what absence looks like
	}
	if !slices.Contains([]string{"cp", "mv", "ln"}, t.cmd.Program) {
		m.interleave(ctx, dirAt(&req.Event, t.index), argv, back, &r)
	}
	r.family = famNoFile
	return r, true
}

// interleave asks once more with both streams as one, to learn in which order a program that goes
// on past the missing name writes to them.
func (m *Maker) interleave(ctx context.Context, dir string, argv []string, back map[string]string, r *reply) {
	if len(r.stdout) == 0 || len(r.stderr) == 0 {
		return
	}
	both, ok := m.ask(ctx, dir, append([]string{"sh", "-c", `exec "$@" 2>&1`, "sh"}, argv...), probeTimeout, back)
	if !ok {
		return
	}
	if parts, ok := pullApart(both.stdout, r.stdout, r.stderr); ok {
		r.parts = parts
	}
}

// part is a stretch of output on one stream.
type part struct {
	err  bool
	text []byte
}

// pullApart splits merged output into stretches of stdout and lines of stderr; false where the two
// do not make up the whole.
func pullApart(merged, stdout, stderr []byte) ([]part, bool) {
	var parts []part
	var rest []byte
	at := 0
	for _, line := range bytes.SplitAfter(stderr, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		i := bytes.Index(merged[at:], line)
		if i < 0 {
			return nil, false
		}
		if i > 0 {
			parts = append(parts, part{false, merged[at : at+i]})
			rest = append(rest, merged[at:at+i]...)
		}
		parts = append(parts, part{true, line})
		at += i + len(line)
	}
	if at < len(merged) {
		parts = append(parts, part{false, merged[at:]})
		rest = append(rest, merged[at:]...)
	}
	return parts, bytes.Equal(rest, stdout)
}

// ask runs argv and puts names back in what it says.
func (m *Maker) ask(ctx context.Context, dir string, argv []string, limit time.Duration, back map[string]string) (reply, bool) {
	if m.run == nil {
		return reply{}, false
	}
	res, err := m.run(ctx, sandbox.Exec{Argv: argv, Dir: dir, Timeout: limit, Limit: probeLimit})
	if err != nil || res.Exit == nil || res.Truncated {
		return reply{}, false
	}
	return reply{stdout: restore(res.Stdout, back), stderr: restore(res.Stderr, back), exit: *res.Exit}, true
}

// restore puts the agent's names back, longest first.
func restore(b []byte, back map[string]string) []byte {
	keys := make([]string, 0, len(back))
	for k := range back {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int { return len(y) - len(x) })
	for _, k := range keys {
		b = bytes.ReplaceAll(b, []byte(k), []byte(back[k]))
	}
	return b
}

// absent gives a name that exists nowhere: the letters and digits of the last part that has any are
// replaced, its extension and all other characters are kept, so that quoting comes out the same.
func (m *Maker) absent(name string) string {
	dir, base := path.Split(strings.TrimRight(name, "/"))
	tail := name[len(strings.TrimRight(name, "/")):]
	if !strings.ContainsFunc(base, wordRune) && dir != "" {
		return m.absent(strings.TrimRight(dir, "/")) + "/" + base + tail
	}
	ext := path.Ext(base)
	if ext == base {
		ext = ""
	}
	return dir + m.scramble(strings.TrimSuffix(base, ext)) + ext + tail
}

func wordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// fresh is the least number of random letters in a name that is to exist nowhere.
const fresh = 8

// scramble replaces each letter and digit by another of its kind, and adds letters where they are
// too few to be unlike every other name. A hex id stays one of the same length.
func (m *Maker) scramble(s string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	hex := isHex(s)
	out, n := []byte(s), 0
	for i, c := range out {
		switch {
		case hex:
			out[i] = "0123456789abcdef"[m.rand.IntN(16)]
		case c >= 'a' && c <= 'z':
			out[i] = byte('a' + m.rand.IntN(26))
		case c >= 'A' && c <= 'Z':
			out[i] = byte('A' + m.rand.IntN(26))
		case c >= '0' && c <= '9':
			out[i] = byte('0' + m.rand.IntN(10))
		default:
			continue
		}
		n++
	}
	for ; n < fresh && !hex; n++ {
		out = append(out, byte('a'+m.rand.IntN(26)))
	}
	return string(out)
}

func isHex(s string) bool {
	return len(s) >= 7 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}
