package rollouts

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// feedPage is how many calls a feed reads from the store at once, which bounds its memory.
const feedPage = 64

// eventDoc is what the store keeps of an event that is not a call.
type eventDoc struct {
	Kind string          `json:"kind"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data,omitempty"`
}

// note appends an event to the rollout's record. An event that cannot be written is logged: the
// document holds the same, and it is the document that counts.
func (r *rollout) note(kind string, data map[string]any) {
	now := r.m.opt.Clock().UTC()
	err := r.rec.note(r.ctx, func(int64) ([]byte, error) {
		raw, err := json.Marshal(data)
		if err != nil {
			return nil, err
		}
		return json.Marshal(eventDoc{Kind: kind, At: now, Data: raw})
	})
	if err != nil {
		r.m.opt.Log.Error("append an event", "rollout", r.id, "kind", kind, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Events gives what happened to a rollout after event number from, live until ctx ends or the
// rollout does; then the channel is closed. A slow reader costs no memory: what it has not taken
// is read from the store when it comes back.
func (m *Manager) Events(ctx context.Context, id string, from int64) (<-chan Event, error) {
	if _, err := m.Get(ctx, id); err != nil {
		return nil, err
	}
	out := make(chan Event)
	go m.feed(ctx, id, from, out)
	return out, nil
}

func (m *Manager) feed(ctx context.Context, id string, from int64, out chan<- Event) {
	defer close(out)
	for {
		// Looked at before the store is read, so that nothing that comes in between is missed.
		r := m.find(id)
		var changed <-chan struct{}
		if r != nil {
			changed = r.nextEvent()
		}
		events, err := m.eventsAfter(ctx, id, from)
		if err != nil {
			m.opt.Log.Warn("read events", "rollout", id, "err", err)
			return
		}
		for _, e := range events {
			select {
			case out <- e:
				from = e.Number
			case <-ctx.Done():
				return
			}
		}
		if len(events) > 0 {
			continue
		}
		if r == nil {
			return
		}
		select {
		case <-changed:
		case <-r.gone:
		case <-ctx.Done():
			return
		case <-m.ctx.Done():
			return
		}
	}
}

// nextEvent gives a channel that is closed at the next event.
func (r *rollout) nextEvent() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// eventsAfter gives the next events of a rollout, calls and others, by number.
func (m *Manager) eventsAfter(ctx context.Context, id string, from int64) ([]Event, error) {
	calls, err := m.opt.Store.CallsAfter(ctx, id, from, feedPage)
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, c := range calls {
		rec, _, err := decodeCall(c)
		if err != nil {
			return nil, err
		}
		normaliseLists(rec)
		at := rec.StartedAt.Add(time.Duration(rec.DurationMS) * time.Millisecond)
		all = append(all, Event{Number: c.Event, Kind: "call", At: at, Data: rec})
	}
	others, err := m.opt.Store.Events(ctx, id, from)
	if err != nil {
		return nil, err
	}
	for _, o := range others {
		var d eventDoc
		if err := json.Unmarshal(o.Doc, &d); err != nil {
			return nil, err
		}
		all = append(all, Event{Number: o.Event, Kind: d.Kind, At: d.At, Data: d.Data})
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Compare(a.Number, b.Number) })
	// The calls may go on past this page: what comes after its last one waits, to keep the order.
	for i, e := range all {
		if e.Number != from+int64(i)+1 {
			return all[:i], nil
		}
	}
	return all, nil
}
