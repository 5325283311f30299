package swerex

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"proctor/monitor"
	"proctor/sandbox"
)

// Bounds of an upload that is an archive.
const (
	maxEntries  = 5000
	maxUnpacked = 256 << 20 // bytes of all files together
)

func (s *Server) execute(r request) (any, error) {
	var in command
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	line := in.Command.line
	if !in.Shell || in.Command.words != nil {
		words := in.Command.words
		if words == nil {
			words = []string{line}
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = quote(w)
		}
		line = strings.Join(quoted, " ")
	}
	out, timedOut, err := s.run(r, in, line)
	if err != nil {
		return nil, err
	}
	if timedOut {
		return nil, raise(classTimeout, "Timeout (%vs) exceeded while running command", seconds(in.Timeout))
	}
	if in.Check && (out.ExitCode == nil || *out.ExitCode != 0) {
		e := raise(classExit, "Command %q failed with exit code %s. Stdout:\n%s\n\nStderr:\n%s", line, number(out.ExitCode), out.Stdout, out.Stderr)
		if in.ErrorMsg != "" {
			e.message = in.ErrorMsg + ": " + e.message
		}
		return nil, e
	}
	return out, nil
}

// run runs a line as the harness, one-shot, or as the agent, in a subshell of its shell, where the two
// streams are one.
func (s *Server) run(r request, in command, line string) (commandResponse, bool, error) {
	if r.who.Principal == monitor.Harness {
		e := sandbox.Exec{ID: r.key, Argv: []string{"sh", "-c", line}, Env: assignments(in.Env), Timeout: time.Duration(seconds(in.Timeout) * float64(time.Second))}
		if in.MergeOutputStreams {
			e.Argv[2] = "exec 2>&1\n" + line
		}
		if in.Cwd != nil {
			e.Dir = *in.Cwd
		}
		res, err := s.host.Exec(r.Context(), r.who.Rollout, e)
		if err != nil {
			return commandResponse{}, false, err
		}
		return commandResponse{Stdout: text(res.Stdout), Stderr: text(res.Stderr), ExitCode: res.Exit}, res.TimedOut, nil
	}
	var b strings.Builder
	b.WriteString("(")
	if in.Cwd != nil {
		b.WriteString("cd " + quote(*in.Cwd) + " || exit 1\n")
	}
	for _, a := range assignments(in.Env) {
		name, value, _ := strings.Cut(a, "=")
		b.WriteString("export " + name + "=" + quote(value) + "\n")
	}
	b.WriteString(line + "\n)")
	seen, err := s.bash(r, map[string]any{"command": b.String(), "timeout_s": seconds(in.Timeout)})
	if err != nil {
		return commandResponse{}, false, err
	}
	return commandResponse{Stdout: seen.Output, ExitCode: seen.ExitCode}, seen.TimedOut, nil
}

func (s *Server) readFile(r request) (any, error) {
	var in readFile
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	out, _, err := s.run(r, command{}, "cat -- "+quote(in.Path))
	if err != nil {
		return nil, err
	}
	if out.ExitCode == nil || *out.ExitCode != 0 {
		return nil, raise(classNoFile, "%s", strings.TrimSpace(out.Stdout+out.Stderr))
	}
	return map[string]string{"content": out.Stdout}, nil
}

func (s *Server) writeFile(r request) (any, error) {
	var in writeFile
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return map[string]any{}, s.put(r, in.Path, []byte(in.Content), 0o644)
}

// put writes one file: as the harness through a one-shot's standard input, as the agent by its create
// tool, or, where the bytes are no text, by a decoder in its shell.
func (s *Server) put(r request, name string, data []byte, mode fs.FileMode) error {
	if r.who.Principal == monitor.Harness {
		script := `mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"`
		res, err := s.host.Exec(r.Context(), r.who.Rollout, sandbox.Exec{Argv: []string{"sh", "-c", script, "sh", name, octal(mode)}, Stdin: data, Timeout: time.Minute})
		if err != nil {
			return err
		}
		return wrote(name, res.Exit, text(res.Stderr))
	}
	var seen monitor.Observation
	var err error
	if utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		seen, err = s.tool(r.Context(), r, "create", map[string]any{"path": name, "file_text": string(data)})
	} else {
		line := "mkdir -p " + quote(path.Dir(name)) + " && base64 -d > " + quote(name) + " <<'EOF'\n" + base64.StdEncoding.EncodeToString(data) + "\nEOF"
		seen, err = s.tool(r.Context(), r, "bash", map[string]any{"command": line})
	}
	if err == nil && seen.ExitCode != nil && *seen.ExitCode == 0 && mode&0o111 != 0 {
		seen, err = s.tool(r.Context(), r, "bash", map[string]any{"command": "chmod " + octal(mode) + " " + quote(name)})
	}
	if err != nil {
		return err
	}
	return wrote(name, seen.ExitCode, seen.Output)
}

func wrote(name string, exit *int, words string) error {
	if exit == nil || *exit != 0 {
		return raise("builtins.OSError", "%s was not written: %s", name, strings.TrimSpace(words))
	}
	return nil
}

// upload takes a file, or a zip of a folder.
func (s *Server) upload(r request) (any, error) {
	file, _, err := r.FormFile("file")
	if err != nil {
		return nil, raise(classValue, "the upload has no file: %v", err)
	}
	defer file.Close()
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	target := r.FormValue("target_path")
	if target == "" {
		return nil, raise(classValue, "target_path is missing")
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	if r.FormValue("unzip") != "true" {
		return map[string]any{}, s.put(r, target, data, 0o644)
	}
	files, err := unpack(data)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := s.put(r, path.Join(target, f.name), f.data, f.mode); err != nil {
			return nil, err
		}
	}
	return map[string]any{}, nil
}

type entry struct {
	name string
	data []byte
	mode fs.FileMode
}

// unpack reads a zip into memory, within bounds, and refuses names that leave the target.
func unpack(data []byte) ([]entry, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, raise(classValue, "the upload is no zip archive: %v", err)
	}
	if len(z.File) > maxEntries {
		return nil, raise(classValue, "the archive has %d entries, at most %d are taken", len(z.File), maxEntries)
	}
	var out []entry
	left := int64(maxUnpacked)
	for _, f := range z.File {
		name := strings.ReplaceAll(f.Name, `\`, "/")
		if !fs.ValidPath(strings.TrimSuffix(name, "/")) {
			return nil, raise(classValue, "the archive names %q, which leaves its folder", f.Name)
		}
		if f.FileInfo().IsDir() {
			continue
		}
		body, err := readEntry(f, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(body))
		out = append(out, entry{name, body, 0o644 | f.Mode().Perm()&0o111})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out, nil
}

func readEntry(f *zip.File, limit int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, raise(classValue, "%s: %v", f.Name, err)
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, raise(classValue, "%s: %v", f.Name, err)
	case int64(len(body)) > limit:
		return nil, raise(classValue, "the archive holds more than %d bytes", maxUnpacked)
	}
	return body, nil
}

// quote makes one word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// assignments gives an environment in order of name, without names that are none.
func assignments(env map[string]string) []string {
	var out []string
	for name, value := range env {
		if name != "" && !strings.ContainsAny(name, "= \t\n'\"$`;&|()<>") {
			out = append(out, name+"="+value)
		}
	}
	sort.Strings(out)
	return out
}

func octal(mode fs.FileMode) string { return fmt.Sprintf("%o", mode.Perm()) }

func number(n *int) string {
	if n == nil {
		return "None"
	}
	return strconv.Itoa(*n)
}

func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
