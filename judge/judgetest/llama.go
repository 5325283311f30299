//go:build interop

package judgetest

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// readyWithin bounds a start of llama.cpp's server; a tiny model is there in a second.
const readyWithin = time.Minute

// Llama starts llama.cpp's server with a tiny model and gives its address; it ends with the test. The
// program and the model are named by PROCTOR_INTEROP_LLAMA and PROCTOR_INTEROP_MODEL; where they are not,
// the test is skipped, loudly: the server has no wheel and compiles for half an hour.
func Llama(t *testing.T, args ...string) string {
	t.Helper()
	server, model := os.Getenv("PROCTOR_INTEROP_LLAMA"), os.Getenv("PROCTOR_INTEROP_MODEL")
	if server == "" || model == "" {
		t.Skip("SKIPPED, LOUDLY: there is no llama.cpp server; WITH_LLAMA=1 make interop compiles it (long)")
	}
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, server, append([]string{"-m", model, "--host", host, "--port", port, "--threads", "1"}, args...)...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said lastLines
	go said.read(bufio.NewScanner(errs))
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	awaitHealthy(t, "http://"+address)
	return "http://" + address
}

// freeAddress gives a loopback address on which nobody listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// awaitHealthy waits until the server says that it is ready.
func awaitHealthy(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(readyWithin); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(url + "/health")
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("llama.cpp's server at %s was not ready within %v", url, readyWithin)
}

// lastLines keeps the end of what a program says. Safe for concurrent use.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lastLines) read(from *bufio.Scanner) {
	for from.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines[max(0, len(l.lines)-29):], from.Text())
		l.mu.Unlock()
	}
}

// String gives the lines.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
