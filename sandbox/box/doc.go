// Package box is the host's side of the box agent: it connects to the agent of a sandbox, makes sure
// that it is the agent, and makes calls through it.
//
// The agent (cmd/boxd, package box/agent) is PID 1 of a sandbox. It listens on a unix socket in a
// folder that the engine mounts, at agent.DefaultSocket seen from inside. Root inside can unlink that
// socket and listen in its place, so Dial checks with SO_PEERCRED that the listener is the process
// that the engine started as the sandbox's init. What arrives is bounded and validated by package
// wire; a lying agent can spoil its own sandbox's results and nothing else.
//
// A Client is one connection. When the host comes again after its own death, a new Dial finds the
// running calls and the finished results by their IDs.
package box
