// Package testlog reads what test runners print: the log parsers that SWE-bench and the sets after it
// name in their rows, by the names that they go by there.
//
// They are written anew from what the published parsers do, and held to them: golden results recorded
// from the swebench package run with every test, and `make grading-swebench` holds them against the
// package itself, on the same logs and on random ones.
//
// A log is text that code under test had a hand in. A parser here believes it, as its model does; what
// a result is worth is weighed elsewhere. Time and memory are linear in the log but where a parser says
// otherwise and bounds it.
package testlog
