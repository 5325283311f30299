package egress

import (
	"sync"
	"time"
)

// Kinds of events.
const (
	KindName  = "name"  // a name was looked up that the policy does not have
	KindTLS   = "tls"   // a connection with TLS inside
	KindHTTP  = "http"  // a request in plain HTTP
	KindRaw   = "raw"   // a connection of another protocol
	KindIndex = "index" // a request to the index of Python packages
	KindNPM   = "npm"   // a request to the npm index
)

// Outcomes of events.
const (
	Carried = "carried" // it was let through
	Refused = "refused" // by the policy, or by a limit
	Failed  = "failed"  // the other end could not be reached, or said so
)

// Event is one thing that a sandbox did on the network. What it names was chosen by the agent.
type Event struct {
	Kind    string        `json:"kind"`
	Host    string        `json:"host"`
	Port    int           `json:"port,omitempty"`
	Outcome string        `json:"outcome"`
	Reason  string        `json:"reason,omitempty"` // of a refusal or failure
	Request string        `json:"request,omitempty"`
	Status  int           `json:"status,omitempty"`    // of an HTTP answer
	Sent    int64         `json:"sent_bytes"`          // by the sandbox
	Got     int64         `json:"received_bytes"`      // by the sandbox
	Took    time.Duration `json:"-"`                   // of the connection, or the request
	Last    bool          `json:"last_kept,omitempty"` // later events of this sandbox are not kept
}

const (
	maxEvents     = 1000 // of one sandbox that reach the record; a build makes a few hundred
	maxNames      = 200  // refused names that are told, each once
	maxEventText  = 300  // bytes of what the agent chose
	refusalHost   = "it is not one of the task's hosts"
	refusalOther  = "it named another host than it was opened for"
	refusalBytes  = "the rollout has used up its bytes"
	refusalCrowd  = "the server carries as many connections as it may"
	refusalNoTLS  = "it speaks no TLS on port 443, or does not name its host"
	refusalNoHTTP = "it speaks no HTTP on port 80"
)

// journal keeps a sandbox's events from flooding its record.
type journal struct {
	record  func(Event) // the record's; nil: none
	observe func(Event) // of all sandboxes; nil: none

	mu      sync.Mutex
	written int
	names   map[string]bool
}

// add tells of an event.
func (j *journal) add(e Event) {
	e.Host, e.Request = clip(e.Host), clip(e.Request)
	if j.observe != nil {
		j.observe(e)
	}
	if j.record == nil {
		return
	}
	j.mu.Lock()
	j.written++
	n := j.written
	j.mu.Unlock()
	if e.Last = n == maxEvents; n <= maxEvents {
		j.record(e)
	}
}

// refusedName tells of a name that does not resolve, once.
func (j *journal) refusedName(name string) {
	j.mu.Lock()
	known := j.names[name] || len(j.names) >= maxNames
	if !known {
		j.names[name] = true
	}
	j.mu.Unlock()
	if !known {
		j.add(Event{Kind: KindName, Host: name, Outcome: Refused, Reason: refusalHost})
	}
}

func clip(s string) string { return s[:min(len(s), maxEventText)] }
