// Package confine holds what engines on this machine's own kernel have in common: how a sandbox is
// confined, and what it shares with the host.
//
//   - The lists: capabilities that root keeps, masked and read-only paths, the seccomp profile.
//   - RunRoot: the host's folder for run folders, each with the socket of one sandbox, and for the
//     box agent's neutral copy.
//   - CPUPicker and CheckLimits: limits as an engine gives them to the kernel.
//   - StartGate: how many starts run at once.
//
// It imports no engine; engines import it, so that a sandbox is confined alike whichever made it.
package confine
