package grading

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// repo is a bare repository of ours, in a private folder, that holds trees made from tar streams.
// Its git never sees a configuration, attribute or hook but its own. Not safe for concurrent use.
type repo struct {
	dir string
}

// newRepo makes an empty repository in a new folder under parent ("" for the system's own).
func newRepo(ctx context.Context, parent string) (*repo, error) {
	dir, err := os.MkdirTemp(parent, "proctor-grade-")
	if err != nil {
		return nil, err
	}
	r := &repo{dir: dir}
	if _, err := r.git(ctx, nil, "init", "-q", "--bare", "--template=", "--initial-branch=none", dir); err != nil {
		_ = r.close()
		return nil, err
	}
	return r, nil
}

func (r *repo) close() error { return os.RemoveAll(r.dir) }

// gitError is a git that ended with a status other than 0.
type gitError struct {
	args   string
	stderr string
	err    error
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %v: %s", e.args, e.err, e.stderr)
}

func (e *gitError) Unwrap() error { return e.err }

// command prepares a git that knows r and nothing else of this machine.
func (r *repo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "LC_ALL=C",
		"GIT_DIR=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_INDEX_FILE=" + filepath.Join(r.dir, "index"),
	}
	return cmd
}

// git runs git and gives its stdout.
func (r *repo) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := r.command(ctx, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("grading needs git on this machine: install it: %w", err)
		}
		return nil, &gitError{args: args[0], stderr: clip(errs.String(), 2000), err: err}
	}
	return out.Bytes(), nil
}

// entry is one file of a tree.
type entry struct {
	mode string // 100644, 100755, 120000
	hash string
}

// listing is a tree by path.
type listing map[string]entry

// list gives every file of a tree.
func (r *repo) list(ctx context.Context, tree string) (listing, error) {
	out, err := r.git(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	return parseListing(out)
}

// parseListing reads "mode type hash\tpath\0" and "mode hash stage\tpath\0".
func parseListing(out []byte) (listing, error) {
	files := listing{}
	for _, line := range strings.Split(string(out), "\x00") {
		if line == "" {
			continue
		}
		head, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 3 {
			return nil, fmt.Errorf("git listed %q, which is no entry of a tree", clip(line, 200))
		}
		hash := fields[1]
		if hash == "blob" || hash == "commit" {
			hash = fields[2]
		} else if fields[2] != "0" {
			return nil, fmt.Errorf("%s is left in conflict", path)
		}
		files[path] = entry{mode: fields[0], hash: hash}
	}
	return files, nil
}

// blob gives the content of a file of a tree, at most limit bytes; an error where it is larger.
func (r *repo) blob(ctx context.Context, hash string, limit int64) ([]byte, error) {
	size, err := r.git(ctx, nil, "cat-file", "-s", hash)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(size)), 10, 64)
	if err != nil || n > limit {
		return nil, fmt.Errorf("object %s is over %d bytes", hash, limit)
	}
	return r.git(ctx, nil, "cat-file", "blob", hash)
}

// diff gives the patch that leads from one tree to another: binary, whole object names, renames found.
func (r *repo) diff(ctx context.Context, from, to string, limit int64) ([]byte, error) {
	cmd := r.command(ctx, "diff-tree", "-r", "-p", "--binary", "--full-index", "--find-renames", "--no-color",
		"--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", from, to)
	out, errs := &capped{limit: limit}, &capped{limit: 1 << 16}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	if out.over {
		return nil, fmt.Errorf("%w: the patch is over %d bytes", ErrTooBig, limit)
	}
	if err != nil {
		return nil, &gitError{args: "diff-tree", stderr: errs.kept.String(), err: err}
	}
	return out.kept.Bytes(), nil
}

// capped keeps what is written to it up to limit bytes, and then refuses. The buffer is no embedded
// one, whose ReadFrom would go round the limit.
type capped struct {
	kept  bytes.Buffer
	limit int64
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	if int64(c.kept.Len()+len(p)) > c.limit {
		c.over = true
		return 0, errors.New("over the limit")
	}
	return c.kept.Write(p)
}

// clip shortens text for a message.
func clip(text string, n int) string {
	text = strings.TrimSpace(text)
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + " ..."
}
