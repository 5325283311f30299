// Package agent is the box agent: PID 1 of a sandbox, which runs what the host asks for.
//
// It shares its machine with an adversary who may be root there. What it relies on is only what the
// kernel keeps from such a root without CAP_SYS_PTRACE: its memory, its descriptors and its own
// death. Everything that the shell or a file says is a claim by the agent under test.
//
// Parts:
//
//   - Server: connections, frames, the results by call ID.
//   - procs: starting processes, reaping all of them, and telling trees apart (group, tag).
//   - shell: the persistent shell, see shell.go for how it is driven.
//   - handles and one-shot commands, both plain process trees with pipes.
//   - collector: bounded output with a spill file.
//   - files: the file tools, with the rights of the sandbox's user.
package agent
