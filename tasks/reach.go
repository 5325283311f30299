package tasks

import (
	"context"
	"fmt"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/egress"
	"proctor/sandbox/egress/index"
)

// allowlist is the word for a network of named hosts.
const allowlist = "allowlist"

// cutOff gives the first instant whose uploads do not exist: of a day its beginning, in UTC.
func (x PackageIndex) cutOff() (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, x.Before); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, x.Before)
}

// AgentReach gives what the agent's sandbox may reach through a relay; false where its network is none
// or open, and it needs no relay.
func (t *Task) AgentReach() (egress.Policy, bool) {
	return t.reach(t.Network.AllowedHosts), t.Network.Agent == allowlist
}

// SetupReach gives what the sandboxes of build and setup lines may reach through a relay.
func (t *Task) SetupReach() (egress.Policy, bool) {
	hosts := append(append([]string{}, t.Network.AllowedHosts...), t.Network.SetupHosts...)
	return t.reach(hosts), t.Network.Setup == allowlist
}

func (t *Task) reach(hosts []string) egress.Policy {
	p := egress.Policy{Hosts: hosts}
	if x := t.Network.PackageIndex; x != nil {
		before, err := x.cutOff()
		if err != nil {
			before = time.Time{} // Validate refuses it; nothing exists before the zero time
		}
		p.Index = &index.Rule{Before: before, Package: t.Vars.Package, Fix: t.Vars.FixVersion, Base: t.Vars.BaseVersion}
	}
	return p
}

// Egress makes relays for sandboxes. *egress.Proxy.
type Egress interface {
	For(egress.Client) (sandbox.Relay, error)
	// IndexEnv points programs inside at the indexes that a sandbox whose policy has one can reach.
	IndexEnv() map[string]string
}

// OpenRelay lets a sandbox reach what c's policy allows. Errors: egress.ErrNoIndex; sandbox.ErrUnavailable
// where the engine has no relay, or carrier is nil.
func OpenRelay(ctx context.Context, box sandbox.Session, carrier Egress, c egress.Client) error {
	relayer, ok := box.(sandbox.Relayer)
	if !ok || carrier == nil {
		return fmt.Errorf("%w: an allowlist needs a relay, which this engine, or this command, does not have", sandbox.ErrUnavailable)
	}
	relay, err := carrier.For(c)
	if err != nil {
		return err
	}
	return relayer.Relay(ctx, relay)
}
