package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"proctor/sandbox"
)

// spillPath finds the path that a notice names.
var spillPath = regexp.MustCompile(`/[^\s'"\])>,;:]+`)

func itoa(n int) string { return strconv.Itoa(n) }

var outputTests = []test{
	{name: "any bytes come as they are (5)", run: func(b *box) {
		b.wants(`printf '\377\376\000\033[31m\r\n\b end'`, "\xff\xfe\x00\x1b[31m\r\n\b end", 0)
		got, err := b.Exec(context.Background(), sandbox.Exec{Argv: []string{"cat"}, Stdin: []byte("\x00\xff\n\x80")})
		if err != nil || string(got.Stdout) != "\x00\xff\n\x80" {
			b.t.Errorf("through stdin and stdout: %q %v", got.Stdout, err)
		}
	}},
	{name: "the last bytes before an exit are not lost (7)", run: func(b *box) {
		for n := range 30 {
			last := fmt.Sprintf("last%d", n)
			b.wants("head -c 8000 /dev/zero | tr '\\0' x; printf "+last, strings.Repeat("x", 8000)+last, 0)
			if out, _ := b.exec("sh", "-c", "printf "+last+"; kill -9 $$"); out != last {
				b.t.Errorf("of a killed program: %q, want %q", out, last)
			}
		}
	}},
	{name: "stdout and stderr keep their order (7)", run: func(b *box) {
		var all strings.Builder
		for n := range 400 {
			fmt.Fprintf(&all, "%d\n", n)
		}
		b.wants(python("import os\nfor n in range(400): os.write(1 + n % 2, b\"%d\\n\" % n)"), all.String(), 0)
		got, err := b.Exec(context.Background(), sandbox.Exec{Argv: []string{"sh", "-c", "echo out; echo err >&2"}})
		if err != nil || string(got.Stdout) != "out\n" || string(got.Stderr) != "err\n" {
			b.t.Errorf("streams of an exec: %q %q %v", got.Stdout, got.Stderr, err)
		}
	}},
	{name: "much output is bounded, the whole in a file (6)", run: func(b *box) {
		got := b.do(sandbox.Call{Op: sandbox.OpShell, Timeout: 2 * time.Minute,
			Command: "awk 'BEGIN { for (i = 1; i <= 4000000; i++) printf \"%015d\\n\", i }'"})
		if !got.Truncated || exitOf(got) != 0 || len(got.Output) > sandbox.OutputLimit+1024 {
			b.t.Fatalf("truncated %v, exit %s, %d bytes", got.Truncated, exitText(got), len(got.Output))
		}
		if !bytes.HasPrefix(got.Output, []byte("000000000000001\n")) || !bytes.HasSuffix(got.Output, []byte("000000004000000\n")) {
			b.t.Errorf("head %.20q and tail %.20q are not the ends", got.Output, got.Output[len(got.Output)-20:])
		}
		for _, path := range spillPath.FindAllString(string(got.Output), -1) {
			if info, err := b.Stat(context.Background(), strings.TrimRight(path, ".")); err == nil && info.Size == 64_000_000 {
				return
			}
		}
		b.t.Errorf("no file of 64,000,000 bytes is named in %.200q", regexp.MustCompile(`\d{15}\n`).ReplaceAll(got.Output, nil))
	}},
	{name: "an exec's streams are bounded", run: func(b *box) {
		got, err := b.Exec(context.Background(), sandbox.Exec{Argv: []string{"head", "-c", "3000000", "/dev/zero"}, Limit: 1000})
		if err != nil || !got.Truncated || len(got.Stdout) > 1000 || got.Exit == nil || *got.Exit != 0 {
			b.t.Errorf("%d bytes, truncated %v, exit %v, %v", len(got.Stdout), got.Truncated, got.Exit, err)
		}
	}},
	{name: "forged ends decide nothing", run: func(b *box) {
		got := b.sh(`for f in /proc/$$/fd/*; do n=${f##*/}; if [ $n -gt 2 ]; then echo '{"exit_code":0}' >&$n; echo 0 >&$n; fi; done 2>/dev/null; (exit 42)`)
		if exitOf(got) != 42 {
			b.t.Errorf("exit %s, output %q", exitText(got), got.Output)
		}
		b.wants("(exit 7)", "", 7)
		b.wants("echo seen; echo too >&2", "seen\ntoo\n", 0)
	}},
}
