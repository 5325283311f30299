package rollouts

import (
	"time"

	"proctor/monitor"
	"proctor/rules"
)

// What the HTTP layer needs of a Manager is declared there, in internal/api's Rollouts interface.

// Filter narrows a listing; zero fields do not narrow.
type Filter struct {
	TaskID  string
	GroupID string
	Status  string
	Limit   int    // most views of one page; 0 means 100
	Cursor  string // the next of the page before; "" for the first
}

// Event is one thing that happened to a rollout, in the order of Number (from 1, without gaps).
type Event struct {
	Number int64     `json:"number"`
	Kind   string    `json:"kind"` // created, call, submitted, graded, failed, deleted
	At     time.Time `json:"at"`
	Data   any       `json:"data,omitempty"` // for call: the *monitor.Record
}

// Explanation is what the rules make of a call: its facts, hits, near misses, and what policy
// would conclude without asking a judge other than the heuristic.
type Explanation struct {
	Event    rules.Event `json:"event"`
	Hits     []rules.Hit `json:"hits"`
	Decision string      `json:"decision"`
}

// ToolList gives the agent's tools as clients are told of them.
func ToolList() []Tool {
	var list []Tool
	for _, t := range monitor.Tools() {
		list = append(list, Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema()})
	}
	return list
}
