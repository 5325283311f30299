// Package docker is the sandbox engine on a local Docker daemon, Engine 20.10 or newer.
//
// A sandbox is one container: its entrypoint is our box agent, mounted read-only over any image; its
// network is none unless asked; it has no privilege worth having. Calls go over a unix socket in a run
// folder that belongs to the one sandbox (package box speaks there), files in bulk through the daemon's
// archive API, and never through `docker exec`.
//
// What can be seen from inside bears no name of ours: the agent is mounted where `docker run --init`
// mounts its own init, host names are Docker's own, container names are random, and the run folder
// lies on a small tmpfs of its own, so that mountinfo shows no path of the host.
//
// On the host, each container and network carries the label "proctor" with the Owner that the engine
// was made with; List, Remove and Sweep touch nothing else.
//
// The package needs the daemon on the same machine: the run folder is a bind mount.
package docker
