package docker

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/system"
)

func TestOpenFilesFrom(t *testing.T) {
	const limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 20000                files     \n"
	for _, row := range []struct {
		status, limits string
		want           int64
	}{
		{"Name:\tdockerd\nCapEff:\t000001fffeffffff\n", limits, 20000},
		{"CapEff:\t000001ffffffffff\n", limits, math.MaxInt64}, // it may raise limits
		{"CapEff:\t0000000000000000\n", "Max open files unlimited unlimited files\n", math.MaxInt64},
		{"", limits, math.MaxInt64},
		{"CapEff:\t0\n", "", math.MaxInt64},
	} {
		if got := openFilesFrom([]byte(row.status), []byte(row.limits)); got != row.want {
			t.Errorf("%q: %d, want %d", row.status, got, row.want)
		}
	}
}

func TestLacks(t *testing.T) {
	info := system.Info{Driver: "overlay2", DriverStatus: [][2]string{{"Backing Filesystem", "extfs"}}}
	if got := lacks(info, true, math.MaxInt64); got != "" {
		t.Error(got)
	}
	want := "no disk quota on overlay2 on extfs, what sandboxes write is measured instead; open files at most 20000, the daemon may not raise its own limit"
	if got := lacks(info, false, 20000); got != want {
		t.Error(got)
	}
}

func TestBootTimeIsPast(t *testing.T) {
	boot, err := bootTime()
	if err != nil || !boot.Before(time.Now()) {
		t.Errorf("%v %v", boot, err)
	}
}

func TestRestarted(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, row := range []struct {
		container, daemon, boot time.Time
		want                    string
	}{
		{at(100), at(50), at(10), ""},
		{at(100), at(150), at(10), "the daemon was restarted"},
		{at(100), at(150), at(140), "the machine was restarted"},
		{at(100), time.Time{}, time.Time{}, ""}, // unreadable: no evidence
	} {
		if got := restarted(row.container, row.daemon, row.boot); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
}

// A daemon elsewhere is as old as its socket, whatever the machine's own daemon did.
func TestDaemonStart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "d.sock")
	if got := daemonStart("unix://" + socket); !got.IsZero() {
		t.Errorf("no socket: %v", got)
	}
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made := time.Unix(1_000_000, 0)
	if err := os.Chtimes(socket, made, made); err != nil {
		t.Fatal(err)
	}
	if got := daemonStart("unix://" + socket); !got.Equal(made) {
		t.Errorf("%v, want %v", got, made)
	}
}
