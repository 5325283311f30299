// Package link is a session's connection to the box agent of its sandbox: one at a time, made anew where it broke
// while the sandbox lives on, and given up for good, with a reason, where the sandbox is dead.
//
// What differs among engines is how a sandbox is looked at from outside: a Machine says whether it runs, by whose
// doing it does not, and what its first process is. All else of a sandbox.Session that speaks to the agent is here.
package link
