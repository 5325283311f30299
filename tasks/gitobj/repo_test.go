package gitobj

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// git runs the host's git, a minute later each time.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// randomRepo makes a repository with a random history of branches, merges, tags and files that make
// good deltas, by one git fast-import.
func randomRepo(t testing.TB, seed uint64, commits int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	var in strings.Builder
	text := make([]string, 8)
	for n := 1; n <= commits; n++ {
		file := rng.IntN(len(text))
		text[file] += fmt.Sprintf("line %d %d\n", n, rng.Uint64())
		branch := []string{"main", "side", "topic/x"}[rng.IntN(3)]
		message := fmt.Sprintf("commit %d\n", n)
		fmt.Fprintf(&in, "commit refs/heads/%s\nmark :%d\ncommitter a <a@b> %d +0000\ndata %d\n%s", branch, n, 1700000000+n*60, len(message), message)
		if n > 3 && rng.IntN(4) == 0 {
			fmt.Fprintf(&in, "merge :%d\n", 1+rng.IntN(n-1))
		}
		fmt.Fprintf(&in, "M 100644 inline d%d/f%d.txt\ndata %d\n%s\n", file%3, file, len(text[file]), text[file])
	}
	fmt.Fprintf(&in, "tag v1\nfrom :%d\ntagger a <a@b> 1700000000 +0000\ndata 3\none\n", 1+commits/2)
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v: %s", err, out)
	}
	git(t, dir, "symbolic-ref", "HEAD", "refs/heads/"+strings.Fields(strings.ReplaceAll(git(t, dir, "branch", "--format=%(refname:short)"), "\n", " "))[0])
	return dir
}

// stores are the shapes in which git keeps the same objects.
var stores = map[string][]string{
	"as imported": nil,
	"repacked":    {"repack -q -a -d -f --depth=50 --window=50"},
	"loose":       {"unpack"},
	"half loose":  {"repack -q -a -d", "commit-tree"},
	"index v1":    {"-c pack.indexVersion=1 repack -q -a -d -F"},
	"ref deltas":  {"-c repack.useDeltaBaseOffset=false repack -q -a -d -F"},
}

func shape(t testing.TB, dir string, steps []string) {
	t.Helper()
	for _, step := range steps {
		switch step {
		case "unpack":
			packs, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
			for _, p := range packs {
				data, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range []string{p, strings.TrimSuffix(p, "pack") + "idx"} {
					if err := os.Remove(f); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command("git", "unpack-objects", "-q")
				cmd.Dir, cmd.Stdin = dir, bytes.NewReader(data)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		case "commit-tree":
			id := git(t, dir, "commit-tree", "-m", "loose", "-p", "HEAD", "HEAD^{tree}")
			git(t, dir, "update-ref", "HEAD", id)
		default:
			git(t, dir, strings.Fields(step)...)
		}
	}
}

func open(t testing.TB, dir string) *Repo {
	t.Helper()
	r, err := Open(filepath.Join(dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestAgainstGit holds every object, ref and history against git's own words.
func TestAgainstGit(t *testing.T) {
	for name, steps := range stores {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				dir := randomRepo(t, seed, 60)
				shape(t, dir, steps)
				r := open(t, dir)
				compareObjects(t, dir, r)
				compareRefs(t, dir, r)
				compareReach(t, dir, r)
			}
		})
	}
}

func compareObjects(t *testing.T, dir string, r *Repo) {
	t.Helper()
	want := strings.Split(git(t, dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)"), "\n")
	all, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range all.IDs() {
		kind, data, err := r.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %d", id, kind, len(data)))
	}
	sort.Strings(want)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("objects differ: %d, git has %d", len(got), len(want))
	}
}

func compareRefs(t *testing.T, dir string, r *Repo) {
	t.Helper()
	refs, err := r.Refs()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ref := range refs {
		if strings.HasPrefix(ref.Name, "refs/") {
			got = append(got, ref.ID.String()+" "+ref.Name)
		}
	}
	if want := git(t, dir, "for-each-ref", "--format=%(objectname) %(refname)"); strings.Join(got, "\n") != want {
		t.Errorf("refs are %q, git says %q", got, want)
	}
	branch, id, err := r.Head()
	if err != nil || branch != git(t, dir, "symbolic-ref", "HEAD") || id.String() != git(t, dir, "rev-parse", "HEAD") {
		t.Errorf("HEAD is %s %s, %v", branch, id, err)
	}
}

func compareReach(t *testing.T, dir string, r *Repo) {
	t.Helper()
	_, base, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Reach(base, Set{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, line := range strings.Split(git(t, dir, "rev-list", "--objects", "HEAD"), "\n") {
		want[strings.Fields(line)[0]] = true
	}
	for id := range h.Objects {
		if !want[id.String()] {
			t.Errorf("%s is not reached by git", id)
		}
	}
	if len(want) != len(h.Objects) {
		t.Errorf("%d objects reached, git says %d", len(h.Objects), len(want))
	}
	if got, want := len(h.Commits), len(strings.Fields(git(t, dir, "rev-list", "HEAD"))); got != want {
		t.Errorf("%d commits, git says %d", got, want)
	}
}

// TestWritePackAgainstGit lets git verify packs that were written here.
func TestWritePackAgainstGit(t *testing.T) {
	for name, steps := range stores {
		t.Run(name, func(t *testing.T) {
			dir := randomRepo(t, 7, 80)
			shape(t, dir, steps)
			r := open(t, dir)
			_, base, err := r.Head()
			if err != nil {
				t.Fatal(err)
			}
			h, err := r.Reach(base, Set{})
			if err != nil {
				t.Fatal(err)
			}
			fresh := t.TempDir()
			git(t, fresh, "init", "-q", "-b", "main")
			pack, err := r.WritePack(filepath.Join(fresh, ".git/objects/pack"), h.Objects)
			if err != nil {
				t.Fatal(err)
			}
			git(t, fresh, "update-ref", "refs/heads/main", base.String())
			git(t, fresh, "verify-pack", "-v", filepath.Join(fresh, ".git/objects/pack", pack+".idx"))
			git(t, fresh, "fsck", "--full", "--strict")
			git(t, fresh, "index-pack", "--strict", "-o", filepath.Join(fresh, "x.idx"), filepath.Join(fresh, ".git/objects/pack", pack+".pack"))
			if got, want := git(t, fresh, "log", "--format=%H %s"), git(t, dir, "log", "--format=%H %s", "HEAD"); got != want {
				t.Errorf("log is\n%s\nwant\n%s", got, want)
			}
			compareObjects(t, fresh, open(t, fresh))
		})
	}
}

func TestFreshIndexAgainstGit(t *testing.T) {
	dir := randomRepo(t, 3, 30)
	git(t, dir, "reset", "-q", "--hard")
	r := open(t, dir)
	_, base, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	h, err := r.Reach(base, Set{})
	if err != nil {
		t.Fatal(err)
	}
	want := git(t, dir, "ls-files", "-s")
	for _, version := range []string{"2", "3", "4"} {
		git(t, dir, "update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			t.Fatal(err)
		}
		x, err := ParseIndex(data)
		if err != nil {
			t.Fatalf("version %s: %v", version, err)
		}
		var got []string
		for _, e := range x.Entries {
			got = append(got, fmt.Sprintf("%o %s %d\t%s", e.Mode, e.ID, e.Stage, e.Name))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("version %s: entries are\n%s\ngit says\n%s", version, strings.Join(got, "\n"), want)
		}
	}
	fresh, err := r.FreshIndex(h.Commits[base].Tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git/index"), fresh, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := git(t, dir, "ls-files", "-s"); got != want {
		t.Errorf("git reads the fresh index as\n%s", got)
	}
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("status is %q", got)
	}
}

func TestConfigAgainstGit(t *testing.T) {
	texts := []string{
		"[core]\n\tbare = false\n[remote \"a b\\\"c\"]\n\turl = https://x\n",
		"[a]x=1\n[A \"S\"] y = \"q # q\" ; comment\n z\n",
		"[a]\n k = one \\\n two\n l = \" lead\" trail  \n m = tab\\there\\n\n",
		"; c\n# d\n[sec-tion]\n\tKey1 = \"a\\\\b\"\n",
		"[a.Sub]\n k = v\n", "\ufeff[a]\n k = v\r\n",
	}
	for _, text := range texts {
		file := filepath.Join(t.TempDir(), "config")
		compare := func(data []byte) {
			t.Helper()
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
			settings, err := ParseConfig(data)
			if err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			var got strings.Builder
			for _, s := range settings {
				name := s.Section
				if s.Subsection != "" {
					name += "." + s.Subsection
				}
				got.WriteString(name + "." + s.Key + "\n" + s.Value + "\x00")
			}
			want := git(t, t.TempDir(), "config", "-z", "--type=path", "--list", "-f", file)
			// git lists a key that stands alone without a value; it means true.
			want = strings.ReplaceAll(want, "a.S.z\x00", "a.S.z\ntrue\x00")
			if got.String() != want {
				t.Errorf("%q is\n%q, git says\n%q", data, got.String(), want)
			}
		}
		compare([]byte(text))
		settings, err := ParseConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		compare(FormatConfig(settings))
	}
	for _, text := range []string{"[a", "k = v", "[a]\n=1", "[a]\nk = \"x\n", "[a \"b]\n", "[a]\nk = \\q\n", "[]\nk=v\n", "[a]\nk v\n"} {
		if _, err := ParseConfig([]byte(text)); err == nil {
			t.Errorf("%q is taken for configuration", text)
		}
	}
}

func TestGetRefuses(t *testing.T) {
	dir := randomRepo(t, 1, 20)
	shape(t, dir, []string{"unpack"})
	r := open(t, dir)
	all, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}
	a, b := all.IDs()[0], all.IDs()[1]
	path := func(id ID) string { return filepath.Join(dir, ".git/objects", loosePath(id)) }
	data, err := os.ReadFile(path(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path(a)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Get(a); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing object: %v", err)
	}
	if err := os.WriteFile(path(a), data, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Get(a); err == nil || !strings.Contains(err.Error(), "content that its id says") {
		t.Errorf("an object under another's name: %v", err)
	}
	if err := os.Remove(path(a)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path(a)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Get(a); err == nil {
		t.Error("an object was read through a link out of the repository")
	}
}

func TestShallow(t *testing.T) {
	dir := randomRepo(t, 2, 40)
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, dir, "clone", "-q", "--depth=3", "file://"+dir, clone)
	r := open(t, clone)
	_, base, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reach(base, Set{}); !errors.Is(err, ErrMissing) {
		t.Errorf("without shallow: %v", err)
	}
	shallow, err := r.Shallow()
	if err != nil || shallow.Len() == 0 {
		t.Fatal(err)
	}
	compare := git(t, clone, "rev-list", "HEAD")
	h, err := r.Reach(base, shallow)
	if err != nil || len(h.Commits) != len(strings.Fields(compare)) {
		t.Errorf("%v, %v", h, err)
	}
}

func TestSet(t *testing.T) {
	var ids []ID
	for i := range 100 {
		ids = append(ids, ID(sha1.Sum([]byte{byte(i % 90)})))
	}
	s := NewSet(append([]ID{}, ids...))
	if s.Len() != 90 || !s.Has(ids[3]) || s.Has(Zero) {
		t.Errorf("set of %d", s.Len())
	}
	text := ids[5].String()
	if !s.HasPrefix(text[:6]) || !s.HasPrefix(text) || s.HasPrefix("0000000") || s.HasPrefix("zz") || s.HasPrefix(text+"0") {
		t.Error("prefixes are wrong")
	}
	data, _ := s.MarshalBinary()
	var back Set
	if err := back.UnmarshalBinary(data); err != nil || back.Len() != s.Len() {
		t.Errorf("back: %d, %v", back.Len(), err)
	}
	if err := back.UnmarshalBinary(data[1:]); err == nil {
		t.Error("a broken length is taken")
	}
}
