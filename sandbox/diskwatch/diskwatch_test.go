package diskwatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fill writes n bytes to a file.
func fill(t *testing.T, path string, n int) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("x", n)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func size(t *testing.T, dirs ...string) int64 {
	t.Helper()
	n, err := measure(context.Background(), Target{Dirs: dirs})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	empty := size(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(dir, "a/b/f"), 1<<20)
	one := size(t, dir)
	if got := one - empty; got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("1 MiB measures %d", got)
	}
	if err := errors.Join(os.Link(filepath.Join(dir, "a/b/f"), filepath.Join(dir, "again")), os.Symlink("/", filepath.Join(dir, "root")), os.Symlink("a", filepath.Join(dir, "loop"))); err != nil {
		t.Fatal(err)
	}
	if got := size(t, dir) - one; got < 0 || got > 64<<10 {
		t.Errorf("another name and two links measure %d", got)
	}
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer sparse.Close()
	if err := sparse.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	if got := size(t, dir) - one; got > 1<<20 {
		t.Errorf("a hole measures %d", got)
	}
	if got := size(t, dir, filepath.Join(dir, "absent")); got != size(t, dir) {
		t.Errorf("a folder that is not there measures %d", got-size(t, dir))
	}
	for i := range 2000 {
		fill(t, filepath.Join(dir, fmt.Sprint("empty", i)), 0)
	}
	if got := size(t, dir) - one; got < 2000*perFile {
		t.Errorf("2000 empty files measure %d", got)
	}
}

// A tree that is too deep to be walked is over any limit, and walking it takes no more than its bound.
func TestDeepTree(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range maxDepth + 50 {
		if err := unix.Mkdirat(fd, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = below
	}
	unix.Close(fd)
	if got := size(t, dir); got != math.MaxInt64 {
		t.Errorf("measures %d", got)
	}
}

// A file that was deleted while it is open, or mapped, is found; one in memory is not of the disk.
func TestDeletedFiles(t *testing.T) {
	held := func() int64 {
		m := &meter{seen: map[file]bool{}}
		m.held(procPath(os.Getpid(), "fd"))
		m.held(procPath(os.Getpid(), "map_files"))
		return m.bytes
	}
	before := held()
	path := filepath.Join(t.TempDir(), "f")
	fill(t, path, 1<<20)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	twice, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer twice.Close()
	if got := held() - before; got != 0 {
		t.Errorf("a file that has a name: %d", got)
	}
	_ = os.Remove(path)
	if got := held() - before; got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("a deleted file, open twice: %d", got)
	}
	all, err := measure(context.Background(), Target{Dirs: []string{t.TempDir()}, Init: os.Getpid})
	if err != nil || all < 1<<20 {
		t.Errorf("with the processes of this one's namespace: %d %v", all, err)
	}
	fd, err := unix.MemfdCreate("m", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	memory := os.NewFile(uintptr(fd), "m")
	defer memory.Close()
	now := held()
	if _, err := memory.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if got := held() - now; got != 0 {
		t.Errorf("a file in memory: %d", got)
	}
}

// A target that outgrows its limit is told once, within seconds; one that does not is left alone.
func TestWatch(t *testing.T) {
	w := New(nil)
	defer w.Close()
	small, large := t.TempDir(), t.TempDir()
	over := make(chan string, 10)
	for id, dir := range map[string]string{"small": small, "large": large} {
		w.Watch(Target{ID: id, Dirs: []string{dir}, Limit: 4 << 20, Over: func(int64) { over <- id }})
	}
	fill(t, filepath.Join(small, "f"), 1<<20)
	time.Sleep(3 * glance)
	fill(t, filepath.Join(large, "f"), 8<<20)
	select {
	case id := <-over:
		if id != "large" {
			t.Errorf("%s is over", id)
		}
	case <-time.After(2 * atMost):
		t.Fatal("nobody is over")
	}
	w.Forget("large")
	fill(t, filepath.Join(small, "f"), 8<<20)
	w.Forget("small")
	select {
	case id := <-over:
		t.Errorf("%s is over after it was forgotten, or again", id)
	case <-time.After(2 * glance):
	}
}

// Who is measured next: who may be furthest over its limit, else who waits longest.
func TestPick(t *testing.T) {
	now := time.Now()
	w := New(nil)
	w.grown[1] = &growth{sum: 1000}
	add := func(id string, used, limit, grownTo int64, ago time.Duration) {
		w.targets[id] = &watched{Target: Target{ID: id, Limit: limit}, dev: 1, used: used, at: now.Add(-ago), grownTo: grownTo}
	}
	expect := func(want string) {
		t.Helper()
		got := ""
		if p := w.pick(now); p != nil {
			got = p.ID
		}
		if got != want {
			t.Errorf("picked %q, want %q", got, want)
		}
	}
	expect("")
	add("fresh", 0, 1e9, 1000, 5*time.Second)
	expect("")
	add("old", 0, 1e9, 1000, atMost+time.Second)
	add("older", 0, 1e9, 1000, atMost+2*time.Second)
	expect("older")
	add("near", 500, 1200, 0, 5*time.Second)
	expect("near")
	add("nearer", 900, 1200, 0, 5*time.Second)
	expect("nearer")
	w.targets["nearer"].at = now // just measured
	expect("near")
	w.targets["near"].overdone = true
	expect("older")
	if w.targets["older"].picked != 1000 {
		t.Error("growth at the beginning is not kept")
	}
}

func BenchmarkMeasure(b *testing.B) {
	dir := b.TempDir()
	for i := range 100 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := measure(context.Background(), Target{Dirs: []string{dir}}); err != nil {
			b.Fatal(err)
		}
	}
}
