// Command proctor is the server, its client, and the tools around it.
package main

import (
	"os"
)

func main() {
	os.Exit(run(os.Args[1:]))
}
