// Package oci is the sandbox engine that drives an OCI runtime (runc, crun, runsc) directly, without a daemon.
//
// A sandbox is a bundle of the runtime specification: its root is an overlay of an image's unpacked layers (package
// images) and a folder of its own, its first process our box agent, mounted read-only; it has all namespaces of its
// own and no network but loopback. It is confined as package confine says, like a sandbox of the docker engine.
//
// On disk, below the store's folder, beside the images:
//
//	b/<owner>/<id>/state.json   what the engine knows of the sandbox, from before anything of it is made
//	             config.json    the bundle
//	             u/ w/ m/       the overlay's upper and work folders, and where it is mounted
//
// Nothing else is kept: an engine made after a crash finds every sandbox there, running, dead or half made. The
// runtime's own state and the run folders lie on a tmpfs of the owner's (confine.RunRoot).
//
// What can be seen from inside bears no name of ours and no path of the host: the overlay is mounted with paths relative
// to the store, and the cgroup is the root of a cgroup namespace.
package oci
