// Command boxd is the init of a sandbox; see package sandbox/box/agent. It takes no flags and looks at
// neither its arguments nor its environment, both of which anyone inside can read: what it needs to know
// comes in the host's first frame.
package main

import (
	"context"
	"os"

	"proctor/sandbox/box/agent"
)

func main() {
	if err := agent.Main(context.Background(), agent.DefaultSocket); err != nil {
		os.Exit(1)
	}
}
