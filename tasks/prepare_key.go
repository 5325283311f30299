package tasks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"proctor/sandbox"
)

// prepareVersion is part of every key: raise it when hardening takes out more than before, so that
// no older image is taken for a hardened one.
const prepareVersion = 3

// hashOf gives the SHA-256 of values as JSON, in hexadecimal.
func hashOf(values ...any) string {
	h := sha256.New()
	for _, v := range values {
		_ = json.NewEncoder(h).Encode(v) // strings, lists and structs of them: cannot fail
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hardenKey names a hardened (or looked-at) image by all that goes into it.
func hardenKey(raw sandbox.Image, task *Task, hardening bool) string {
	return hashOf("prepared", prepareVersion, raw.Digest, task.Workdir, task.HiddenPaths, task.Squash, task.Vars.Package, task.Vars.BaseVersion, task.Vars.FixVersion,
		solutionPatch(task), hardening)
}

// preparedRef is the reference under which a prepared image is kept with the engine.
func preparedRef(key string) string { return "proctor/prepared:" + key[:32] }

// maxPatch bounds a solution that is read for the names of its files, in bytes.
const maxPatch = 16 << 20

// solutionPatch gives the solution's text, where it is a patch; "" else.
func solutionPatch(task *Task) string {
	if task.Solution == "" || task.Dir == "" || strings.HasSuffix(task.Solution, ".sh") {
		return ""
	}
	root, err := os.OpenRoot(task.Dir)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(filepath.FromSlash(path.Clean(task.Solution)))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxPatch))
	if err != nil {
		return ""
	}
	return string(data)
}

// solvedFiles gives the files that the solution writes, where it is a patch.
func solvedFiles(task *Task) []string {
	var files []string
	for _, line := range strings.Split(solutionPatch(task), "\n") {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			name, _, _ = strings.Cut(name, "\t")
			files = append(files, path.Clean(strings.TrimRight(name, "\r")))
		}
	}
	return files
}
