package evalrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// appendLog is an append-only file of JSON lines. A line is durable when Append returns; one that a
// crash cut short is taken away when the file is opened. Safe for concurrent use.
type appendLog struct {
	mu sync.Mutex
	f  *os.File
}

// openLog opens a log and calls each with every whole line.
func openLog(path string, each func(line []byte) error) (*appendLog, error) {
	body, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := body[:bytes.LastIndexByte(body, '\n')+1]
	for i, line := range bytes.Split(whole, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := each(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(len(whole))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(int64(len(whole)), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &appendLog{f: f}, nil
}

// Append writes v as one line.
func (l *appendLog) Append(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.f.Write(b.Bytes()); err != nil {
		return err
	}
	return l.f.Sync()
}

// Close closes the file.
func (l *appendLog) Close() error { return l.f.Close() }

// attemptKey names an attempt.
type attemptKey struct {
	task string
	k    int
}

// readResults reads a journal. A later line for the same attempt takes the earlier one's place.
func readResults(path string) (map[attemptKey]*Result, *appendLog, error) {
	out := map[attemptKey]*Result{}
	log, err := openLog(path, func(line []byte) error {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		out[attemptKey{r.TaskID, r.Attempt}] = &r
		return nil
	})
	return out, log, err
}
