package confine

import "time"

// Kinds of a Leftover.
const (
	LeftSandbox = "sandbox"
	LeftService = "service"
	LeftNetwork = "network"
	LeftFolder  = "run folder"
	LeftImage   = "image"
)

// Leftover is something of ours that the machine keeps.
type Leftover struct {
	Kind    string
	ID      string
	Name    string
	Created time.Time // zero where not known
	Bytes   int64     // 0 where not known
}
