package harden

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"path/filepath"

	"proctor/tasks/gitobj"
)

// squash gives a pulled repository a start commit without history: the tree of its HEAD, a plain
// author and message, the time of HEAD. All other commits are then foreign, as any later one is. For
// sets whose history holds the answer (SWE-smith's bug is a commit on top of it).
func squash(dir string, borrowed []string) error {
	git, err := gitobj.Open(dir, borrowed...)
	if err != nil {
		return err
	}
	defer func() { _ = git.Close() }()
	branch, head, err := git.Head()
	if err != nil {
		return err
	}
	if head == gitobj.Zero {
		return nil
	}
	_, data, err := git.Get(head)
	if err != nil {
		return fmt.Errorf("squash: %w", err)
	}
	commit, err := gitobj.ParseCommit(data)
	if err != nil {
		return fmt.Errorf("squash: %w", err)
	}
	who := fmt.Sprintf("user <user@localhost> %d +0000", commit.When)
	text := fmt.Appendf(nil, "tree %s\nauthor %s\ncommitter %s\n\nInitial commit\n", commit.Tree, who, who)
	id := gitobj.Hash(gitobj.Commit, text)
	if err := writeLoose(dir, id, "commit", text); err != nil {
		return fmt.Errorf("squash: %w", err)
	}
	ref := "HEAD"
	if branch != "" {
		ref = filepath.FromSlash(branch)
		if !gitobj.ValidRefName(branch) {
			return fmt.Errorf("squash: HEAD is on %.100q", branch)
		}
	}
	file := filepath.Join(dir, ref)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(id.String()+"\n"), 0o600)
}

// writeLoose writes an object as git stores one by itself.
func writeLoose(dir string, id gitobj.ID, kind string, data []byte) error {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = fmt.Fprintf(z, "%s %d\x00", kind, len(data)) // into memory: cannot fail
	_, _ = z.Write(data)
	_ = z.Close()
	name := id.String()
	folder := filepath.Join(dir, "objects", name[:2])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name[2:]), b.Bytes(), 0o600)
}
