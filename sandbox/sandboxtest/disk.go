package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"proctor/sandbox"
)

// fills writes 48 MiB four times, to files that have names, and to ones that were deleted while they are open.
const (
	fills   = `for i in 1 2 3 4; do head -c 50331648 /dev/zero > /var/tmp/fill$i || echo full; done; sleep 60`
	hides   = `for i in 1 2 3 4; do exec {fd}> /var/tmp/fill$i; rm /var/tmp/fill$i; head -c 50331648 /dev/zero >&$fd || echo full; done; sleep 60`
	diskMax = 128
)

// outOfDisk holds that a command that writes more than the limit meets a full disk, or ends the sandbox by the
// agent's own doing.
func outOfDisk(b *box, command string) {
	b.t.Helper()
	small := b.another(sandbox.Spec{Limits: sandbox.Limits{DiskMB: diskMax}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	got, err := small.Do(ctx, sandbox.Call{ID: "fill", Op: sandbox.OpShell, Command: command, Timeout: 55 * time.Second})
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &dead):
		if dead.Class != sandbox.FailureModel || !strings.Contains(dead.Reason, "disk") {
			b.t.Errorf("the sandbox died: %v", dead)
		}
	case err != nil:
		b.t.Error(err)
	case !strings.Contains(string(got.Output), "full"):
		b.t.Errorf("192 MiB fitted into %d: %q", diskMax, got.Output)
	}
	if dead == nil {
		return
	}
	if dead = againDead(ctx, b, small.ID()); dead == nil || dead.Class != sandbox.FailureModel {
		b.t.Errorf("attached again: %v", dead)
	}
}

// againDead takes a sandbox up as the next server would, until it is dead: the verdict comes first, and the
// last of its processes a moment later.
func againDead(ctx context.Context, b *box, id string) *sandbox.DeadError {
	b.t.Helper()
	engine := b.lab.Engine(b.t, b.lab.Owner)
	defer engine.Close()
	for {
		again, err := engine.Attach(ctx, id)
		if err == nil {
			err = errors.Join(again.Alive(ctx), again.Detach())
		}
		var dead *sandbox.DeadError
		if errors.As(err, &dead) {
			return dead
		}
		select {
		case <-ctx.Done():
			b.t.Errorf("attached again: %v", err)
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var diskTests = []test{
	{name: "many files cannot outgrow the disk limit either (10, 11)", slow: true, run: func(b *box) { outOfDisk(b, fills) }},
	{name: "nor can files that were deleted while they are open (10, 11)", slow: true, run: func(b *box) { outOfDisk(b, hides) }},
}
