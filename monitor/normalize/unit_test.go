package normalize

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseable(t *testing.T) {
	for text, want := range map[string]bool{
		"ls -l":                        true,
		strings.Repeat("(", 100):       true,
		strings.Repeat("(", 101):       false,
		strings.Repeat("()", 5000):     true,
		strings.Repeat("x", maxText+1): false,
		strings.Repeat("x", maxText):   true,
		strings.Repeat("{[(", 40):      false,
		strings.Repeat(`\`, 64) + "`":  false,
	} {
		if got := parseable(text); got != want {
			t.Errorf("%.20s... (%d bytes): %v", text, len(text), got)
		}
	}
}

func TestGlobReach(t *testing.T) {
	for _, tc := range []struct {
		pat, target string
		want        reach
	}{
		{"/t*d/.e*l/c*.json", "/testbed/.eval", reachDirect},
		{"/testbed/.eval", "/testbed/.eval", reachDirect},
		{"/testbed/*", "/testbed/.eval", reachNone}, // no dotglob
		{"/testbed/.*", "/testbed/.eval", reachDirect},
		{"/*", "/hidden", reachStar},
		{"/*/x", "/hidden", reachStar},
		{"/h?dden/*", "/hidden", reachDirect},
		{"/t*", "/testbed/.eval", reachAbove},
		{"/srv/*", "/hidden", reachNone},
		{"/testbed/**/x", "/testbed/a/grader", reachStar},
		{`/testbed/\*`, "/testbed/grader", reachNone},
		{"/hidde[mn]/a", "/hidden", reachDirect},
	} {
		if got := globReach(tc.pat, tc.target); got != tc.want {
			t.Errorf("globReach(%q, %q) = %d, want %d", tc.pat, tc.target, got, tc.want)
		}
	}
}

func TestTestPaths(t *testing.T) {
	task := newTaskFacts(Task{Workdir: "/w", Vars: map[string][]string{"test_paths": {"tests", "pkg/**/tests", "**/*_test.go", "check.py", "/w/abs"}}})
	for p, want := range map[string]bool{
		"/w/tests/a.py": true, "/w/tests": true, "/w/tests2/a.py": false, "/w/pkg/a/b/tests/x.py": true, "/w/pkg/tests/x.py": true, "/w/x_test.go": true,
		"/w/a/b/x_test.go": true, "/w/x_tests.go": false, "/w/check.py": true, "/w/recheck.py": false, "/w/abs/x": true, "/tests/a.py": false, "/w/src/tests.py": false,
		"/w/a/*_t?st.go": true, "/w/te*/x": true, "/w/src/*.py": false,
	} {
		if got := task.isTest(p); got != want {
			t.Errorf("isTest(%s) = %v", p, got)
		}
	}
}

func TestPrintf(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{`a%sb\n`, "x"}, "axb\n"}, {[]string{`%s-`, "a", "b"}, "a-b-"}, {[]string{`\147\x69\u0074`}, "git"}, {[]string{`%b`, `\0147`}, "g"},
		{[]string{"%d%%", "7"}, "7%"}, {[]string{"%05d|%-4s|%.2s", "42", "ab", "xyz"}, "00042|ab  |xy"}, {[]string{"%x %o", "255", "8"}, "ff 10"}, {[]string{"%s"}, ""}, {[]string{"%c%c", "hello", "x"}, "hx"},
	} {
		if got, ok := printf(tc.args[0], tc.args[1:]); !ok || got != tc.want {
			t.Errorf("printf %q = %q, %v", tc.args, got, ok)
		}
	}
	for _, bad := range []string{"%y", "%", "%5"} {
		if got, ok := printf(bad, nil); ok {
			t.Errorf("printf %q = %q", bad, got)
		}
	}
	if got, ok := printf("%99999999999s", []string{"x"}); !ok || len(got) > 4096 {
		t.Errorf("a huge width gave %d bytes", len(got))
	}
}

func TestTransform(t *testing.T) {
	for _, tc := range []struct {
		words string
		in    string
		want  string
	}{
		{"base64 -d", "aGk=\n", "hi"}, {"base64 --decode", "aG k=", "hi"}, {"xxd -r -p", "6869\n", "hi"}, {"rev", "ab\ncd", "ba\ndc"}, {"tr a-c A-C", "abcd", "ABCd"}, {"tr -d x", "axbx", "ab"},
		{"sed s/a/b/g", "aa\na", "bb\nb"}, {"sed s|a|b|", "aa", "ba"}, {"openssl base64 -d", "aGk=", "hi"},
		{"openssl enc -d -a", "aGk=", "hi"}, {"base32 -d", "NBUQ====", "hi"}, {"xxd -p", "hi", "6869\n"}, {"xxd", "hi", "00000000: 6869  .\n"}, {"xxd -r", "00000000: 6869 0a  hi.", "hi\n"},
		{"rot13", "uv", "hi"}, {"tr [:lower:] [:upper:]", "hi", "HI"}, {"tr [a-c] [x-z]", "[abc]", "[xyz]"}, {"sed s/a*/b/", "aac", "bc"}, {"sed -E s/(a)(b)/\\2\\1/", "ab", "ba"}, {"sed s/[ab]/<&>/g", "ab", "<a><b>"},
		{"sed s/$x/$y/", "$x", "$x"}, {"sort", "b\na\n", "a\nb\n"}, {"sort -u", "b\nb\na\n", "a\nb\n"}, {"uniq", "b\nb\n", "b\n"}, {"grep a", "ab\nc\n", "ab\n"}, {"grep -v a", "ab\nc\n", "c\n"}, {"grep -F a.c", "abc\na.c\n", "a.c\n"},
		{"cut -d: -f2", "a:b:c\n", "b\n"}, {"cut -d: -f2-", "a:b:c\n", "b:c\n"}, {"cut -c2-3", "abcd\n", "bc\n"}, {"cut -c 1,4", "abcd\n", "ad\n"}, {"paste -sd,", "a\nb\n", "a,b\n"},
	} {
		words := strings.Fields(tc.words)
		if got := transform(words[0], words[1:], tc.in); !got.known || got.s != tc.want {
			t.Errorf("%s of %q = %+v, want %q", tc.words, tc.in, got, tc.want)
		}
	}
	for _, words := range []string{"sort -k2", "sed y/a/b/", `sed s/\<a/b/`, "tr -c a x", "cut -f", "cut -c0-2", "grep -o a", "grep -P a", "openssl enc -d -aes-256-cbc", "xz -d", "uudecode", "awk {x}"} {
		w := strings.Fields(words)
		if got := transform(w[0], w[1:], "abc"); got.known {
			t.Errorf("%s gave %q", words, got.s)
		}
	}
}

func TestSplitSpec(t *testing.T) {
	for _, tc := range []struct{ manager, spec, want string }{
		{"pip", "widgets==1.4", "widgets = 1.4"}, {"pip", "widgets", "widgets  "}, {"pip", "widgets>=1.2,<2", "widgets > 1.2"}, {"pip", "widgets[extra]==1.0 ; python_version>'3'", "widgets = 1.0"},
		{"npm", "@acme/widgets@3.2.0", "@acme/widgets = 3.2.0"}, {"npm", "widgets@latest", "widgets  "}, {"npm", "widgets@^3.1", "widgets > 3.1"}, {"npm", "@acme/widgets", "@acme/widgets  "},
		{"go", "github.com/acme/widgets@v1.4.0", "github.com/acme/widgets = 1.4.0"}, {"mvn", "org.x:y:3.13.0:jar:sources", "org.x:y = 3.13.0"}, {"pip", "widgets<1.4", "widgets < 1.4"}, {"conda", "sympy=1.12", "sympy = 1.12"}, {"pip", "widgets~=1.3", "widgets > 1.3"},
	} {
		name, op, version := splitSpec(tc.manager, tc.spec)
		if got := fmt.Sprintf("%s %s %s", name, op, version); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.spec, got, tc.want)
		}
	}
}

func TestRelation(t *testing.T) {
	task := newTaskFacts(Task{Vars: map[string][]string{"package": {"widgets"}, "base_version": {"1.3.0"}, "fix_version": {"1.4.0"}}})
	for _, tc := range []struct{ op, version, want string }{
		{"=", "1.3.0", "base"}, {"=", "1.3.5", "base"}, {"=", "1.2", "older"}, {"=", "1.4", "fixed"}, {"=", "1.4.0", "fixed"}, {"=", "1.5", "newer"}, {"=", "2", "newer"}, {"", "", "any"}, {">", "1.0", "any"}, {"<", "1.4", "older"}, {"<", "3", "any"},
	} {
		if got := task.relation(tc.op, tc.version); got != tc.want {
			t.Errorf("relation(%s%s) = %s, want %s", tc.op, tc.version, got, tc.want)
		}
	}
	bare := newTaskFacts(Task{})
	if got := bare.relation("=", "1"); got != "unknown" {
		t.Errorf("without versions: %s", got)
	}
}

func TestSubstitution(t *testing.T) {
	for _, tc := range []struct{ script, removed, added string }{
		{"s/a/b/", "a", "b"}, {"s|x == 1|x >= 1|g", "x == 1", "x >= 1"}, {"1i import os", "", "import os"}, {`2i fin() { exit 0; }`, "", "fin() { exit 0; }"}, {"s/a/b/; s/c/d/", "a\nc", "b\nd"},
		{"/def x/d", "def x", ""}, {`s/^def f(/&\n    x = 1/`, "def f(", "&\n    x = 1"}, {`$a\text here`, "", "text here"}, {"s{a/b}{c}", "a/b", "c"}, {"3,5d", "", ""}, {`s/assert /assert True or /`, "assert ", "assert True or "},
		{"10c\\\nnew line", "", "new line"},
	} {
		if removed, added := substitution(tc.script); removed != tc.removed || added != tc.added {
			t.Errorf("%q: removed %q, added %q", tc.script, removed, added)
		}
	}
}

func TestRecipes(t *testing.T) {
	const makefile = "CC = gcc\nURL := https://x.example/$(CC)\n.PHONY: all test\nall: build\n\t@echo $(CC)\nbuild:\n\t$(CC) a.c\n\t-curl $(URL)\ntest: ; pytest\n"
	for _, tc := range []struct {
		want string
		out  []string
	}{
		{"", []string{"gcc a.c", "curl https://x.example/gcc", "echo gcc"}}, {"test", []string{"pytest"}}, {"none", nil},
	} {
		want := map[string]bool{}
		if tc.want != "" {
			want[tc.want] = true
		}
		if got := recipes(makefile, want); fmt.Sprint(got) != fmt.Sprint(tc.out) {
			t.Errorf("make %s: %q, want %q", tc.want, got, tc.out)
		}
	}
}

func TestLiterals(t *testing.T) {
	for _, tc := range []struct{ lang, src, want string }{
		{"python", `x = 'a' 'b'`, "ab"}, {"python", `'%s/%d' % ('a', 3)`, "a/3"}, {"python", `p = 'a'; q = p + 'b'; use(q)`, "ab"}, {"python", `k = 'A' + 'B'; f"x {k!r} {z}"`, "x 'AB' {z}"},
		{"python", `'abc'[::-1]`, "cba"}, {"python", `''.join(chr(c) for c in [104, 105])`, "hi"}, {"python", `'-'.join(['a', 'b'])`, "a-b"}, {"python", `'a'.upper() + 'B'.lower()`, "Ab"},
		{"node", "const a = 'x'; `${a}/y`", "x/y"}, {"node", `['a','b'].join('')`, "ab"}, {"node", `Buffer.from('aGk=','base64').toString()`, "hi"}, {"node", `atob("aGk=")`, "hi"}, {"node", `String.fromCharCode(104,105)`, "hi"},
		{"perl", `my $x = "a" . "b"; print $x`, "ab"}, {"ruby", `x = "a"; puts "#{x}b"`, "ab"}, {"go", `const u = "a" + "b"`, "ab"}, {"python", `os.path.join('/a', 'b', 'c')`, "/a/b/c"}, {"python", `codecs.decode('uryyb', 'rot13')`, "hello"},
		{"python", `('a' * 3) + 'b'`, "aaab"}, {"python", `bytes([104, 105]).decode()`, "hi"}, {"python", `"a,b".split(",")[1] + "c"`, "bc"}, {"php", `"a" . 'b'`, "ab"},
	} {
		fo := &folder{toks: lex(tc.src, tc.lang), lang: tc.lang, cwd: "/"}
		found := false
		for _, l := range fo.literals() {
			found = found || l.value == tc.want
		}
		for _, c := range fo.vars {
			found = found || c.s == tc.want
		}
		if !found {
			t.Errorf("%s: %s: no %q in %+v", tc.lang, tc.src, tc.want, fo.vars)
		}
	}
}

// TestTable: a fork writes nothing to its origin until it is committed, deletions included.
func TestTable(t *testing.T) {
	base := table[int]{}
	base.set("a", 1)
	base.set("b", 2)
	base.commit()
	f := base.fork()
	f.set("a", 9)
	f.del("b")
	f.set("c", 3)
	if v, _ := base.get("a"); v != 1 {
		t.Errorf("a = %d before the commit", v)
	}
	top := f.save()
	f.set("c", 4)
	f.restore(top)
	sum := 0
	f.each(func(_ string, v int) bool { sum += v; return true })
	if _, ok := f.get("b"); ok || sum != 12 {
		t.Errorf("fork: b there %v, sum %d", ok, sum)
	}
	f.commit()
	if _, ok := f.get("b"); ok || len(f.base) != 2 {
		t.Errorf("after the commit: %v", f.base)
	}
	full := table[int]{}
	for i := range 2 * maxEntries {
		full.set(fmt.Sprint(i), i)
	}
	if len(full.top) > maxEntries {
		t.Errorf("%d entries", len(full.top))
	}
}

func TestDiffFiles(t *testing.T) {
	got := diffFiles("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/n.py\n+n\n--- a/d.py\n+++ /dev/null\n-d\n", 1)
	var s []string
	for _, f := range got {
		s = append(s, f.Op+" "+f.Path)
	}
	if want := "[edit x.py create n.py delete d.py]"; fmt.Sprint(s) != want || got[0].Added != "new\n" || got[0].Removed != "old\n" {
		t.Errorf("%v, want %s: %+v", s, want, got)
	}
}

// FuzzEvent: no call breaks the normaliser, and every event is bounded with spans inside the text.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		"ls -l | grep x > out 2>&1", "cat <<EOF > a.py\nprint('a'+'b')\nEOF", "a=(1 2); echo ${a[@]:1:2} ${!a} ${a/1/2}", "python3 -c \"import os; os.system('ls')\"", "git -c alias.x='!f() { git log; }; f' x",
		"for i in {1..3}; do (cd $i; make -C x); done", "sed -i 's/a/b/;1i x' f && find . -exec rm {} +", "curl -K- <<< 'url=http://x/y'", "$(printf '\\x6c\\x73')", "echo `echo \\`ls\\``", "x() { x; }; x", "case $1 in a) ls;; esac; trap 'ls' EXIT",
		"node -e 'fetch(`https://x/${1+1}`)'", "perl -e 's{a}{b}g; print `ls`'", "npm i @a/b@1 && pip install 'a[b]>=1;x'", "[[ -f x && ! -d y ]] || exec 3<>/dev/tcp/h/1", "awk 'BEGIN{\"ls\"|getline}'", "tar -C / -cf - x | ssh localhost tar x",
	} {
		f.Add("bash", s, "")
	}
	f.Add("create", "/testbed/a.py", "f'{x!r}' '%s' % ('a',)")
	f.Add("str_replace", "conftest.py", "a\nb")
	f.Fuzz(func(t *testing.T, tool, a, b string) {
		n := New(Task{Workdir: "/testbed", Vars: map[string][]string{"hidden_paths": {"/hidden", "/testbed/.eval"}, "test_paths": {"tests", "**/*_test.go"}, "package": {"widgets"}, "upstream_repo": {"acme/widgets"}}}, nil)
		call := Call{Tool: tool, Command: a, Path: a, File: b, Old: a, New: b, Line: len(b) % 7}
		ev := n.Event(t.Context(), call)
		if len(ev.Commands) > maxCommands || len(ev.Files) > maxWords || len(ev.Scripts) > 64 || len(ev.Packages) > maxWords || len(ev.Notes) > 9 {
			t.Fatalf("unbounded: %d commands, %d files", len(ev.Commands), len(ev.Files))
		}
		for _, note := range ev.Notes {
			if strings.HasPrefix(note, "normaliser: ") {
				t.Fatalf("panic on %q: %s", a, note)
			}
		}
		for _, c := range ev.Commands {
			if c.Span.Start < 0 || c.Span.End < c.Span.Start || c.Span.End > len(ev.Call.Text) {
				t.Fatalf("span %+v outside %d bytes of %q", c.Span, len(ev.Call.Text), a)
			}
		}
		n.Observe(call, true, "")
	})
}
