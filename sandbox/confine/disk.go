package confine

import (
	"fmt"
	"math"

	"proctor/sandbox"
)

// OutOfDisk is the death of a sandbox that wrote used bytes, MaxInt64 where it cannot be measured, of limit.
func OutOfDisk(used, limit int64) *sandbox.DeadError {
	what := fmt.Sprintf("it wrote %d MiB", used>>20)
	if used == math.MaxInt64 {
		what = "it made a tree of files that cannot be measured"
	}
	return &sandbox.DeadError{Class: sandbox.FailureModel, Reason: fmt.Sprintf("out of disk: %s, and its limit is %d MiB", what, limit>>20)}
}
