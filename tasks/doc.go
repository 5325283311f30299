// Package tasks holds what is to be solved and how it is judged: the Task, loaders for the sets that
// publish them, hardening of their images, and grading in a fresh sandbox.
//
// It imports package sandbox alone.
package tasks
