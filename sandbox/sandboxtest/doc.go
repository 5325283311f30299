// Package sandboxtest holds what every engine has to keep, as a contract suite (Run), and an in-memory
// engine to test other packages with, without Docker (Fake).
//
// The suite knows an engine only through package sandbox. Each test names what it shows; an engine that
// cannot hold a point says so in its Capabilities, and the test that needs it is skipped with that reason.
package sandboxtest
