package harden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// maxBorrowing is how far alternates may lead from one to the next; git's own bound is 5.
const maxBorrowing = 5

// sources gives the folders that copies were made of, sorted.
func (h *hardener) sources(copies []string) []string {
	var names []string
	for _, c := range copies {
		for source, dir := range h.borrowed {
			if dir == c {
				names = append(names, source)
			}
		}
	}
	sort.Strings(names)
	return names
}

// alternates pulls the folders of objects that a store borrows from, and gives their copies.
func (h *hardener) alternates(ctx context.Context, source, local string, depth int) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(local, "info/alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if depth >= maxBorrowing {
		return nil, errors.New("alternates lead from one to the next without end")
	}
	var copies []string
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		target := resolve(source, line)
		dir, known := h.borrowed[target]
		if !known {
			if dir, err = h.borrow(ctx, target); err != nil {
				return nil, err
			}
			if dir == "" {
				continue
			}
		}
		more, err := h.alternates(ctx, target, dir, depth+1)
		if err != nil {
			return nil, err
		}
		copies = append(append(copies, dir), more...)
	}
	return copies, nil
}

// borrow pulls one folder of objects; "" where it is not there, as after a move.
func (h *hardener) borrow(ctx context.Context, target string) (string, error) {
	if _, err := h.box.Stat(ctx, target); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	dir := filepath.Join(h.scratch, fmt.Sprintf("borrowed%d", len(h.borrowed)))
	if err := pullDir(ctx, h.box, target, dir, nil); err != nil {
		return "", fmt.Errorf("reading the alternate %s: %w", target, err)
	}
	h.borrowed[target] = dir
	if h.survey.gitDirOver(target) == "" {
		h.remote = append(h.remote, target)
	}
	return dir, nil
}
