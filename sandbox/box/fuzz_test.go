package box_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/box/wire"
)

// fake is an agent that answers whatever it likes.
func fake(t testing.TB, answer []byte, hangUp bool) (io.ReadWriteCloser, func()) {
	host, inside := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, inside) }()
	go func() {
		_ = inside.SetWriteDeadline(time.Now().Add(2 * time.Second))
		_, _ = inside.Write(answer)
		if hangUp {
			inside.Close()
		}
	}()
	return host, func() { inside.Close() }
}

func welcomeFrame(t testing.TB) []byte {
	return frame(t, wire.Frame{Kind: wire.KindWelcome, Payload: wire.Welcome{Version: wire.Version, Shell: "/bin/bash"}.Encode()})
}

// A lying agent cannot harm the host: every call comes back, with an error or with a valid result.
func FuzzClient(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 9, 65, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add(frame(f, wire.Frame{Kind: wire.KindReply, ID: 1, Payload: wire.EncodeResult(sandbox.Result{Output: []byte("x")})}))
	f.Add(frame(f, wire.Frame{Kind: wire.KindFail, ID: 1, Payload: wire.EncodeFail(sandbox.ErrStart)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, stop := fake(t, append(welcomeFrame(t), data...), true)
		defer stop()
		c, err := box.Open(context.Background(), conn, box.Init{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		res, err := c.Do(ctx, sandbox.Call{ID: "1", Op: sandbox.OpShell, Command: "true"})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("the call hangs")
		}
		if err == nil && (len(res.Output) > 2*sandbox.OutputLimit || res.Exit != nil && (*res.Exit < 0 || *res.Exit > 255)) {
			t.Errorf("%+v", res)
		}
		if _, err := c.Exec(ctx, sandbox.Exec{Argv: []string{"true"}}); errors.Is(err, context.DeadlineExceeded) {
			t.Error("the second call hangs")
		}
	})
}

func TestBadGreetings(t *testing.T) {
	for name, answer := range map[string][]byte{
		"nothing":       {},
		"garbage":       bytes.Repeat([]byte("x"), 1000),
		"a reply":       frame(t, wire.Frame{Kind: wire.KindReply}),
		"a long frame":  {0x7f, 0xff, 0xff, 0xff},
		"other version": frame(t, wire.Frame{Kind: wire.KindWelcome, Payload: wire.Welcome{Version: 99}.Encode()}),
		"empty welcome": frame(t, wire.Frame{Kind: wire.KindWelcome}),
	} {
		conn, stop := fake(t, answer, true)
		if _, err := box.Open(context.Background(), conn, box.Init{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
		stop()
	}
	conn, stop := fake(t, nil, false)
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := box.Open(ctx, conn, box.Init{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent agent: %v", err)
	}
}

// An agent that sends what cannot be decoded is given up, with an error for all who wait.
func TestGarbageEndsTheClient(t *testing.T) {
	bad := frame(t, wire.Frame{Kind: wire.KindReply, ID: 1, Payload: []byte{0xff}})
	conn, stop := fake(t, append(welcomeFrame(t), bad...), false)
	defer stop()
	c, err := box.Open(context.Background(), conn, box.Init{})
	if err != nil {
		t.Fatal(err)
	}
	var dead *sandbox.DeadError
	if _, err := c.Do(context.Background(), sandbox.Call{ID: "1", Op: sandbox.OpShell}); !errors.As(err, &dead) {
		t.Errorf("%v", err)
	}
	if err := c.Alive(context.Background()); !errors.As(err, &dead) {
		t.Errorf("%v", err)
	}
}

// An agent that sends without end what nobody asked for costs the host nothing that stays, and holds up no caller.
func TestFloodOfReplies(t *testing.T) {
	host, inside := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, inside) }()
	stop := make(chan struct{})
	go func() {
		defer inside.Close()
		_, _ = inside.Write(welcomeFrame(t))
		large := frame(t, wire.Frame{Kind: wire.KindReply, ID: 1 << 40, Payload: make([]byte, 1<<20)})
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := inside.Write(large); err != nil {
					return
				}
			}
		}
	}()
	defer close(stop)
	c, err := box.Open(context.Background(), host, box.Init{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if _, err := c.Do(ctx, sandbox.Call{ID: "1", Op: sandbox.OpShell}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that is never answered: %v", err)
		}
		cancel()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the host keeps %d MiB", grown>>20)
	}
}
