// Package egress is what sandboxes reach of the world where a task has an allowlist: a proxy in the
// server's own process, to which package box relays the connections that programs in a sandbox make.
//
//   - Policy: the hosts and the package indexes that one sandbox may reach.
//   - Proxy: one for a server; it resolves, refuses what is not public, dials, and bounds.
//   - Relay: one for a sandbox (Proxy.For); it knows whose the connections are, and tells of each in an
//     Event for the record.
//
// A name outside the policy does not resolve, as on a machine that knows no resolver. A connection that
// names another host than it was opened for, in its TLS hello or its Host header, is closed: behind the
// address of an allowed host may lie all that its provider serves. Names are resolved here, once for each
// connection, and an answer that is not a public address is refused, so that no allowed name leads into
// the host's own network, to its loopback or to a cloud's metadata service, unless the operator says so.
//
// What a TLS connection carries is not read. An allowed host can therefore serve whatever it serves: what
// must not be had from it, such as a package's fixed version, needs a package index (package index), and no
// allowed host that has it too.
package egress
