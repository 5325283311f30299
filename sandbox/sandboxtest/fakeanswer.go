package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"proctor/sandbox"
)

// answerLocked answers a call with the built-in commands. Preconditions: mu is held.
func (s *FakeSession) answerLocked(call sandbox.Call) (output string, exit *int, handle string) {
	status := 0
	switch call.Op {
	case sandbox.OpShell:
		output, status = s.commandLocked(call.Command)
	case sandbox.OpSpawn:
		text, _ := s.commandLocked(call.Command)
		handle = fmt.Sprintf("bg%d", len(s.handles)+1)
		s.handles[handle] = []byte(text)
		return "", nil, handle
	case sandbox.OpOutput, sandbox.OpInput, sandbox.OpKill:
		text, ok := s.handles[call.Handle]
		if !ok && call.Handle != "shell" {
			output, status = "no such handle: "+call.Handle+"\n", 1
		} else if call.Op == sandbox.OpOutput {
			output = string(text)
			s.handles[call.Handle] = nil
		}
	default:
		var err error
		if output, err = s.fileLocked(call); err != nil {
			output, status = err.Error()+"\n", 1
		}
	}
	return output, &status, ""
}

// commandLocked runs one built-in command. Preconditions: mu is held.
func (s *FakeSession) commandLocked(command string) (output string, exit int) {
	word, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
	switch word {
	case "true", "sleep", "":
		return "", 0
	case "false":
		return "", 1
	case "exit":
		n, err := strconv.Atoi(rest)
		if err != nil {
			return "exit: " + rest + ": numeric argument required\n", 2
		}
		return "", n
	case "pwd":
		return s.cwd + "\n", 0
	case "cd":
		s.cwd = s.absLocked(rest)
		return "", 0
	case "echo":
		return strings.Trim(rest, `'"`) + "\n", 0
	case "cat":
		data, ok := s.files[s.absLocked(rest)]
		if !ok {
			return "cat: " + rest + ": No such file or directory\n", 1
		}
		return string(data), 0
	}
	return "bash: " + word + ": command not found\n", 127
}

// fileLocked does a file operation. Preconditions: mu is held.
func (s *FakeSession) fileLocked(call sandbox.Call) (string, error) {
	full := s.absLocked(call.Path)
	data, there := s.files[full]
	if call.Op != sandbox.OpCreate && !there {
		return "", fmt.Errorf("%s: no such file", call.Path)
	}
	switch text := string(data); call.Op {
	case sandbox.OpView:
		return text, nil
	case sandbox.OpCreate:
		s.editLocked(full, call.Text)
		return "created " + call.Path + "\n", nil
	case sandbox.OpReplace:
		if n := strings.Count(text, call.Old); n != 1 || call.Old == "" {
			return "", fmt.Errorf("%s: the text occurs %d times, not once", call.Path, n)
		}
		s.editLocked(full, strings.Replace(text, call.Old, call.New, 1))
		return "replaced\n", nil
	case sandbox.OpInsert:
		lines := strings.SplitAfter(text, "\n")
		if call.Line < 0 || call.Line > len(lines) {
			return "", fmt.Errorf("%s: no line %d", call.Path, call.Line)
		}
		s.editLocked(full, strings.Join(slices.Insert(lines, call.Line, call.New+"\n"), ""))
		return "inserted\n", nil
	case sandbox.OpUndo:
		edits := s.undo[full]
		if len(edits) == 0 {
			return "", fmt.Errorf("%s: nothing to undo", call.Path)
		}
		s.undo[full] = edits[:len(edits)-1]
		if s.files[full] = edits[len(edits)-1]; s.files[full] == nil {
			delete(s.files, full) // the edit had made it
		}
		return "undone\n", nil
	}
	return "", fmt.Errorf("unknown operation %q", call.Op)
}

// editLocked writes a file and keeps what it was. Preconditions: mu is held.
func (s *FakeSession) editLocked(full, text string) {
	s.undo[full] = append(s.undo[full], s.files[full])
	s.files[full] = []byte(text)
}

// Pull gives the files at and below name as a tar stream.
func (s *FakeSession) Pull(_ context.Context, name string) (io.ReadCloser, error) {
	if err := s.deadError(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.absLocked(name)
	var names []string
	for other := range s.files {
		if other == full || strings.HasPrefix(other, strings.TrimSuffix(full, "/")+"/") {
			names = append(names, other)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	slices.Sort(names)
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	var errs []error
	for _, other := range names {
		inside := path.Base(full) + strings.TrimPrefix(other, full)
		errs = append(errs, w.WriteHeader(&tar.Header{Name: inside, Mode: 0o644, Size: int64(len(s.files[other]))}))
		_, err := w.Write(s.files[other])
		errs = append(errs, err)
	}
	return io.NopCloser(&stream), errors.Join(append(errs, w.Close())...)
}

// Push unpacks a tar stream's regular files below dir.
func (s *FakeSession) Push(_ context.Context, dir string, stream io.Reader) error {
	if err := s.deadError(); err != nil {
		return err
	}
	for r := tar.NewReader(stream); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		s.SetFile(path.Join(dir, path.Clean("/"+head.Name)), data)
	}
}
