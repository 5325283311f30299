package box_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// step is a command and what has to come of it: output exactly, or matching; any code where it is any.
type step struct {
	command string
	output  string // "" with match nil: any where loose
	match   *regexp.Regexp
	code    int
}

const anyCode = -2 // any exit code

func loose(command string) step { return step{command, "", regexp.MustCompile(""), anyCode} }

func match(command, pattern string, code int) step {
	return step{command, "", regexp.MustCompile(pattern), code}
}

var (
	alive = match(`/bin/sh -c 'echo al''ive; exit 3'`, `alive\n`, 3)
	clean = step{"echo seen; echo too >&2", "seen\ntoo\n", nil, 0}
	keep  = step{"mkdir -p /tmp/kept && cd /tmp/kept && export KEPT='a b'", "", nil, 0}
	kept  = match(`echo "$PWD|$KEPT"`, `/tmp/kept\|a b\n`, 0)
)

// after gives steps that run each command, whatever it says, and then more.
func after(commands []string, more ...step) []step {
	var steps []step
	for _, c := range commands {
		steps = append(append(steps, loose(c)), more...)
	}
	return steps
}

func (b *testBox) talk(steps ...step) {
	b.t.Helper()
	for _, s := range steps {
		began := time.Now()
		res := b.sh(s.command)
		out := string(res.Output)
		fits := s.match == nil && out == s.output || s.match != nil && s.match.MatchString(out)
		if !fits || s.code != anyCode && s.code != code(res) || res.TimedOut {
			b.t.Errorf("%.300q: exit %d, timed out %t, output %.600q\nwant exit %d, output %.200q %v",
				s.command, code(res), res.TimedOut, out, s.code, s.output, s.match)
		}
		if took := time.Since(began); took > 8*time.Second {
			b.t.Errorf("%.300q took %s", s.command, took)
		}
	}
}

const forgeries = `
{ set; declare -f; alias; trap -p; tr '\0' '\n' </proc/$$/cmdline; tr '\0' '\n' </proc/$$/environ; } 2>&1 | head -c 6000
printf '%s\n' "$PS1$PS2$PROMPT_COMMAND" '###EXIT:0###' 'EXITCODESTART0EXITCODEEND' '{"exit_code":0}' '0' 'exit 0'
printf '\033]133;D;0\a\036''0\036\r\n\0\n\004\003\032'; echo really-''last; (exit 42)`

const spray = `for f in /proc/$$/fd/*; do n=${f##*/}; if [ $n -gt 2 ]; then for t in 0 'exit 0' '{"exit_code":0}'; do ` +
	`printf '%s\n' "$t" >&$n; done; fi; done 2>/dev/null; (exit 42)`

func closing(fds ...int) string {
	var b strings.Builder
	for _, n := range fds {
		fmt.Fprintf(&b, "exec %d>&-; ", n)
	}
	return b.String()
}

// The steps are those of the conformance probe that concern the shell, and some harder ones.
func TestShell(t *testing.T) {
	builtins := strings.Fields("echo printf read eval exit cd pwd test command builtin export declare set source trap cat env exec kill")
	aliases, functions := "", ""
	for _, name := range builtins {
		aliases += "alias " + name + "=false; "
		functions += "function " + name + " { return 99; }; "
	}
	hostile := []string{"PS1= PS2= PROMPT_COMMAND='exit 9'", "IFS=0123456789", "set -xv", "trap false DEBUG ERR RETURN",
		"trap '' INT TERM HUP CHLD PIPE", "set -C; set -f; set -u", "set -o posix", "PATH=/nowhere",
		"readonly BASH_ENV=/x ENV=/x; HISTFILE=/dev/full", "shopt -s failglob"}
	cases := map[string][]step{
		"state": {
			{"mkdir -p '/tmp/p é' && cd '/tmp/p é'; plain='a  b'; export EXPORTED='c*'; list=(1 '2 3')", "", nil, 0},
			{`echo "$PWD|$plain|$EXPORTED|${list[1]}"; pwd; sh -c 'echo "${plain-unset}|$EXPORTED"'`,
				"/tmp/p é|a  b|c*|2 3\n/tmp/p é\nunset|c*\n", nil, 0},
			{"declare -A map=([k]=v); declare -i n=7; f() { local x=1; declare -g g=2; }; f", "", nil, 0},
			{`echo "${map[k]}$n${g}${x-none}"`, "v72none\n", nil, 0},
		},
		"functions and aliases": {
			{"twice() { local n=$1; echo \"$n$n\"; return 9; }; alias greet='echo hello from'", "", nil, 0},
			{"greet alias", "hello from alias\n", nil, 0}, {"twice ab", "abab\n", nil, 9},
		},
		"options": {
			{"set -o noglob; shopt -s nullglob; umask 027; trap 'echo trapped' USR1; trap 'echo early' EXIT", "", nil, 0},
			{"echo /*; shopt -q nullglob && umask; kill -USR1 $$", "/*\n0027\ntrapped\n", nil, 0},
			{"exit 4", "early\n", nil, 4},
		},
		"last status": {
			{"(exit 42)", "", nil, 42}, {"echo $?", "42\n", nil, 0}, {"false", "", nil, 1}, {"echo $?", "1\n", nil, 0},
			{"echo $?", "0\n", nil, 0}, {"set -e; ! true", "", nil, 1}, {"echo $?", "1\n", nil, 0},
			{"[ -f /none ] && echo y || (exit 5)", "", nil, 5}, {"echo $?", "5\n", nil, 0},
		},
		"own 126 and 127": {
			{"sh -c 'echo mine; exit 126'", "mine\n", nil, 126}, {"sh -c 'echo mine; exit 127'", "mine\n", nil, 127},
			match("/no/such/program", "/no/such/program", 127), {"echo x > /tmp/plain; /tmp/plain", "", regexp.MustCompile(""), 126},
		},
		"exit":      {keep, {"echo before; exit 3; echo never", "before\n", nil, 3}, kept, alive},
		"set -e":    {keep, {"set -euo pipefail; false | cat; echo never", "", nil, 1}, kept, alive},
		"set -u":    {keep, match("set -u; echo $no_such_variable; echo ne''ver", "^bash: .*no_such_variable.*\n$", anyCode), kept, alive},
		"kill -9":   {keep, {"kill -9 $$; echo never", "", nil, 137}, kept, alive},
		"kill all":  {keep, loose("sh -c 'kill -9 -1'; echo never"), kept, alive},
		"exec":      {keep, {"exec false", "", nil, 1}, kept, {"exec true", "", nil, 0}, kept, alive},
		"syntax":    {keep, match("if then )) fi", "syntax error", anyCode), kept, alive},
		"break":     {keep, loose("break 3; continue 2; return 7"), kept, alive},
		"lost fds":  {keep, loose(closing(10, 11, 12, 13, 14, 15, 27, 28, 29, 30, 31, 32, 255)), kept, alive},
		"noexec":    {keep, loose("set -n"), kept, alive},
		"extdebug":  {keep, loose("shopt -s extdebug; trap false DEBUG"), kept, alive},
		"nofile":    {keep, loose("ulimit -n 12"), kept, alive},
		"idle kill": {keep, {"(sleep 0.2; kill -9 $$) >/dev/null 2>&1 &", "", nil, 0}, {"sleep 0.1", "", nil, 0}, loose("sleep 0.5"), kept, alive},
		"gone cwd":  after([]string{"mkdir -p /tmp/gone && cd /tmp/gone && rmdir /tmp/gone", "kill -9 $$"}, alive),
		"pid 1":     after(strings.Split("kill -"+strings.ReplaceAll("TERM INT HUP QUIT ABRT SEGV BUS FPE ILL TRAP USR1 USR2 PIPE TSTP STOP KILL URG PROF RTMIN RTMAX", " ", " 1,kill -")+" 1", ","), alive),
		"open input": after([]string{"echo 'open", `echo "open`, "echo $(open", "cat <<EOF\nopen", "if true; then",
			"echo \\", "{"}, clean),
		"heredocs": {
			{"cat <<'EOF'\nIt's \"q\" $HOME `date` \\n \\\n\ttab\nEOF\nx=7\ncat <<-EOF\n\tx is $x\n\tEOF\n",
				"It's \"q\" $HOME `date` \\n \\\n\ttab\nx is 7\n", nil, 0},
			{"cat <<EOF\nlast\nEOF", "last\n", nil, 0}, {"false # comment", "", nil, 1}, {"# only a comment", "", nil, 0},
			{"for i in 1 2\ndo\n  echo $i \\\n    and\ndone\n\nf() {\n  echo f\n}\nf # comment", "1 and\n2 and\nf\n", nil, 0},
			{"-n", "", regexp.MustCompile("not found"), 127}, {"", "", nil, 0}, {"\n\n", "", nil, 0},
		},
		"long commands": {
			{"x=" + strings.Repeat("a", 1<<20) + "; echo ${#x}", "1048576\n", nil, 0},
			match("wc -c <<'EOF'\n"+strings.Repeat("a line of 16 b.\n", 1<<16)+"EOF\n", "^ *1048576\n$", 0),
			{"export LONG=1; : '" + strings.Repeat("x'\\''y", 4000) + "'; (exit 9)", "", nil, 9},
			{`echo "$? $LONG ${_c-unset}"`, "9 1 unset\n", nil, 0},
			{"kill -9 $$", "", nil, 137}, {"echo $LONG", "1\n", nil, 0},
		},
		"forged ends": {match(forgeries, "really-last\n$", 42), clean},
		"sprayed fds": {{spray, "", regexp.MustCompile(""), 42}, {"(exit 7)", "", regexp.MustCompile(""), 7}, clean},
		"closed fds":  {{closing(3, 4, 5, 6, 7, 8, 9, 0, 2, 1) + "(exit 5)", "", regexp.MustCompile(""), 5}, clean},
		"redirected":  append(after([]string{"exec >/dev/null 2>&1", "exec >/tmp/swallow", "exec 2>&1 1>/dev/full", "exec </dev/zero"}, clean), match("wc -c", "^ *0\n$", 0)),
		"hostile":     after(hostile, alive),
		"shadowed":    after([]string{aliases, `\unalias -a; ` + functions, "function : { return 99; }; function [ { return 99; }"}, alive),
		"control bytes": {
			{`printf 'a\r\nb\033[31mred\033[0m\bc\ad\tend'`, "a\r\nb\033[31mred\033[0m\bc\ad\tend", nil, 0},
			{`printf '\n\n x \n\n'`, "\n\n x \n\n", nil, 0}, {`printf '\377\000\376'`, "\xff\x00\xfe", nil, 0},
		},
		"empty stdin": {{"cat", "", nil, 0}, {"read x", "", nil, 1}, {"sh", "", nil, 0}, match("wc -c", "^ *0\n$", 0),
			{"bash -c 'cat; echo done'", "done\n", nil, 0}},
		"neutral": {{"echo $PAGER,$GIT_PAGER,$EDITOR,$VISUAL,$DEBIAN_FRONTEND,$GIT_TERMINAL_PROMPT",
			"cat,cat,true,true,noninteractive,0\n", nil, 0}},
		"zombies": {{"for i in 1 2 3; do (sleep 0.2 &); done; sleep 0.6", "", nil, 0},
			{"grep -l ') Z ' /proc/[0-9]*/stat 2>/dev/null", "", nil, anyCode}},
		"children's descriptors": {match("sh -c 'ls /proc/self/fd | wc -l'", `^ *4\n$`, 0)},
		"error names":            {match("no_such_command_x", `^bash: line \d+: no_such_command_x: command not found\n$`, 127)},
		"environment kept": {
			{"export A=$'x\\ny\\t\\'z' B='\"q\" $HOME `w` \\\\' C= D='é😀'; export E; exec false", "", nil, 1},
			loose("export A=$'x\\ny\\t\\'z' B='\"q\" $HOME `w` \\\\' C= D='é😀'; export E"),
			{"kill -9 $$", "", nil, 137},
			{`printf '%s|' "$A" "$B" "${C-unset}" "$D" "${E-unset}"; echo $SHLVL`, "x\ny\t'z|\"q\" $HOME `w` \\\\||é😀|unset|1\n", nil, 0},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newBox(t, box.Init{Workdir: "/"}).talk(steps...)
		})
	}
}

func TestExitCodes(t *testing.T) {
	b := newBox(t, box.Init{})
	for n := range 256 {
		b.talk(step{fmt.Sprintf("(exit %d)", n), "", nil, n})
	}
	for _, n := range []int{1, 2, 6, 9, 11, 13, 15} {
		b.talk(match(fmt.Sprintf("sh -c 'kill -%d $$'", n), "", 128+n))
	}
}

func TestNULInCommand(t *testing.T) {
	b := newBox(t, box.Init{})
	res := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "echo a\x00b; echo second"})
	if code(res) != 1 || !strings.Contains(string(res.Output), "NUL") {
		t.Errorf("exit %d, output %q; want 1 and words about NUL", code(res), res.Output)
	}
	b.talk(alive)
}
