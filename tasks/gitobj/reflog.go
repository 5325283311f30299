package gitobj

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// maxReflog bounds one reflog, in bytes.
const maxReflog = 64 << 20

// ReflogEntry is one line of a reflog.
type ReflogEntry struct {
	Old, New ID
	Message  string
}

// ParseReflog reads a reflog, oldest first.
func ParseReflog(data []byte) ([]ReflogEntry, error) {
	var entries []ReflogEntry
	for n, line := range strings.Split(string(data), "\n") {
		if line == "" {
			continue
		}
		head, message, _ := strings.Cut(line, "\t")
		words := strings.SplitN(head, " ", 3)
		if len(words) < 2 {
			return nil, fmt.Errorf("line %d is broken", n+1)
		}
		before, ok1 := ParseID(words[0])
		after, ok2 := ParseID(words[1])
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("line %d is broken", n+1)
		}
		entries = append(entries, ReflogEntry{Old: before, New: after, Message: message})
	}
	return entries, nil
}

// Reflogs gives every reflog by its ref's name.
func (r *Repo) Reflogs() (map[string][]ReflogEntry, error) {
	logs := map[string][]ReflogEntry{}
	err := fs.WalkDir(r.dir.FS(), "logs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := r.ReadFile(name, maxReflog)
		if err != nil {
			return err
		}
		entries, err := ParseReflog(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		logs[strings.TrimPrefix(name, "logs/")] = entries
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return logs, nil
	}
	return logs, err
}
