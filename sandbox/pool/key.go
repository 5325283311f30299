package pool

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"proctor/sandbox"
)

// spareName is the name of sandboxes that are made for stock.
const spareName = "spare"

// poolable reports whether sandboxes of spec can stand for each other. Labels and hostnames cannot be given
// later; hosts and named networks belong to one rollout, and a waiting sandbox would keep its network from
// being removed.
func poolable(spec sandbox.Spec) bool {
	plain := sandbox.Network{Mode: spec.Network.Mode}
	switch spec.Network.Mode {
	case "", "none", "open":
	default:
		return false
	}
	return len(spec.Labels) == 0 && spec.Hostname == "" && reflect.DeepEqual(spec.Network, plain)
}

// spareOf gives the spec that spares of spec's kind are made from. A lifetime is kept by the rollout, not
// by the sandbox, and so does not tell kinds apart.
func spareOf(spec sandbox.Spec) sandbox.Spec {
	spec.Name = spareName
	spec.Limits = spec.Limits.WithDefaults()
	spec.Limits.Lifetime = 0
	if spec.Network.Mode == "" {
		spec.Network.Mode = "none"
	}
	return spec
}

// keyOf names the kind of spec. All fields count, those too that a Spec gets one day: %#v writes them, maps
// in order of their keys.
func keyOf(digest string, spec sandbox.Spec) string {
	return fmt.Sprintf("%s %#v", digest, spareOf(spec))
}

// digestAge is how long an image's digest is believed. Within it a reference that was moved to another image
// may still give a spare of the old one; asking the engine each time would cost a claim milliseconds, and
// much more under a storm of starts.
const digestAge = time.Second

// digests remembers what references stand for. Safe for concurrent use.
type digests struct {
	engine sandbox.Engine
	clock  func() time.Time

	mu    sync.Mutex
	known map[string]digest
}

type digest struct {
	text string
	at   time.Time
}

// of gives the digest of an image. Errors are the engine's.
func (d *digests) of(ctx context.Context, ref string) (string, error) {
	d.mu.Lock()
	have, ok := d.known[ref]
	d.mu.Unlock()
	if ok && d.clock().Sub(have.at) < digestAge {
		return have.text, nil
	}
	image, err := d.engine.Image(ctx, ref)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock()
	for other, old := range d.known {
		if now.Sub(old.at) >= digestAge {
			delete(d.known, other)
		}
	}
	d.known[ref] = digest{image.Digest, now}
	return image.Digest, nil
}
