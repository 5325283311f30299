// Package sandbox is the contract between a rollout and the isolated machine that it runs in.
//
// Vocabulary:
//
//   - A sandbox is the isolated machine of one rollout. An Engine makes sandboxes; a Session is the
//     host's hold on one. Engines live in sub-packages and are wired in cmd only.
//   - A Call is one operation that the agent's tools ask for: a command typed into the persistent
//     shell, a background command, a poll, a file edit. A Result is what it gave.
//   - An Exec is a one-shot argv by the harness: set-up, grading, probes. It never touches the shell.
//   - The box agent is our static binary inside a sandbox (cmd/boxd); package box speaks to it.
//
// What every engine must keep, point by point, is tested by package sandboxtest.
//
// This package imports nothing of ours, and no engine.
package sandbox
