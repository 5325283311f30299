// Package harden takes out of an image what would give a task's answer away, and proves that it is
// gone: later history in git repositories, hidden files, bytecode, package caches.
//
// How. A sandbox is made from the raw image. Survey reads its folders as tar streams and finds the
// repositories; each is pulled into a private folder on the host and read by package gitobj, never
// by git, and never in the sandbox. From what its HEAD can reach a new git directory is written on
// the host, holding that and nothing else, and put in the place of the old one. The result is
// committed as an image; a second sandbox made from that image is audited: every object, ref, log,
// setting and file name must be one that is allowed. The audit knows what is allowed, not what is
// forbidden, so a kind of leak that nobody thought of fails it.
//
// Guarantee: fail-closed. What cannot be read, bounded or understood is an error and no image.
//
// The image's content was written by strangers: names are checked, links are never followed on the
// host, sizes and counts are bounded.
package harden

import (
	"context"
	"io"

	"proctor/sandbox"
)

// Box is what hardening needs of a sandbox; sandbox.Session has it.
type Box interface {
	Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error)
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	Stat(ctx context.Context, path string) (sandbox.FileInfo, error)
	Pull(ctx context.Context, path string) (io.ReadCloser, error)
	Push(ctx context.Context, dir string, tar io.Reader) error
}

// Leak is one thing that would have given the answer away.
type Leak struct {
	Kind string `json:"kind"`           // see the Kind constants
	Path string `json:"path"`           // the repository's git directory, or the file
	Name string `json:"name,omitempty"` // of a ref, a remote, a setting
	Text string `json:"text"`           // in words
}

// The kinds of leaks.
const (
	KindRef        = "ref"
	KindTag        = "tag"
	KindReflog     = "reflog"
	KindStash      = "stash"
	KindObject     = "object"
	KindAlternates = "alternates"
	KindWorktree   = "worktree"
	KindCopy       = "copy"
	KindBundle     = "bundle"
	KindIndex      = "index"
	KindConfig     = "config"
	KindHook       = "hook"
	KindState      = "state"
	KindHidden     = "hidden"
	KindBytecode   = "bytecode"
	KindCache      = "cache"
	KindCredential = "credential"
	KindPackage    = "package"
)

func (l Leak) String() string { return l.Path + ": " + l.Text }
