package docker

import (
	"encoding/json"

	"proctor/sandbox/confine"
)

// seccompProfile is the profile in the daemon's JSON, which is the runtime-spec's.
func seccompProfile() (string, error) {
	text, err := json.Marshal(confine.SeccompProfile())
	return string(text), err
}
