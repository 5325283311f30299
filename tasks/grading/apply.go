package grading

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Rungs of the apply ladder, from the strictest.
const (
	StepApply    = "git-apply"
	StepThreeWay = "3-way"
	StepFuzz     = "patch-fuzz"
)

// errPatch: no rung of the ladder holds.
var errPatch = errors.New("the patch does not apply")

// fuzzer is the last rung: it gives the files named as a fuzzy applier leaves them. See fuzzIn.
type fuzzer func(ctx context.Context, patch []byte, before map[string][]byte) (map[string][]byte, error)

// apply applies a patch to a tree and gives the files that result and the rung that held. The tree
// lies in our own repository: no file is written, and nothing of the agent's runs.
func (r *repo) apply(ctx context.Context, base string, patch []byte, fuzz fuzzer) (listing, string, error) {
	var why []string
	for _, rung := range []struct {
		step string
		args []string
	}{
		{StepApply, []string{"apply", "--cached", "--whitespace=nowarn"}},
		{StepThreeWay, []string{"apply", "--cached", "--3way", "--whitespace=nowarn"}},
	} {
		if _, err := r.git(ctx, nil, "read-tree", base); err != nil {
			return nil, "", err
		}
		_, err := r.git(ctx, patch, rung.args...)
		if err == nil {
			files, err := r.index(ctx)
			if err == nil {
				return files, rung.step, nil
			}
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		var git *gitError
		if err != nil && !errors.As(err, &git) {
			return nil, "", err
		}
		why = append(why, fmt.Sprintf("%s: %v", rung.step, err))
	}
	files, err := r.applyFuzzy(ctx, base, patch, fuzz)
	if err != nil {
		why = append(why, fmt.Sprintf("%s: %v", StepFuzz, err))
		return nil, "", fmt.Errorf("%w: %s", errPatch, strings.Join(why, "; "))
	}
	return files, StepFuzz, nil
}

func (r *repo) index(ctx context.Context) (listing, error) {
	out, err := r.git(ctx, nil, "ls-files", "-s", "-z")
	if err != nil {
		return nil, err
	}
	return parseListing(out)
}

// applyFuzzy hands the files that the patch names to the fuzzy applier, which knows no renames, modes
// or binary content: a patch with any of these ends here.
func (r *repo) applyFuzzy(ctx context.Context, base string, patch []byte, fuzz fuzzer) (listing, error) {
	if fuzz == nil {
		return nil, errors.New("not to be had")
	}
	files, err := r.list(ctx, base)
	if err != nil {
		return nil, err
	}
	before := map[string][]byte{}
	for _, name := range namedFiles(patch) {
		if e, ok := files[name]; ok {
			if before[name], err = r.blob(ctx, e.hash, maxPatch); err != nil {
				return nil, err
			}
		}
	}
	after, err := fuzz(ctx, patch, before)
	if err != nil {
		return nil, err
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			delete(files, name)
		}
	}
	for name, content := range after {
		if _, ok := treePath("x/" + name); !ok {
			return nil, fmt.Errorf("it writes to %q", clip(name, 200))
		}
		hash, err := r.git(ctx, content, "hash-object", "-w", "--no-filters", "--stdin")
		if err != nil {
			return nil, err
		}
		mode := "100644"
		if e, ok := files[name]; ok {
			mode = e.mode
		}
		files[name] = entry{mode: mode, hash: strings.TrimSpace(string(hash))}
	}
	return files, nil
}

// namedFiles gives the paths in the ---/+++ lines of a patch, without their a/ and b/.
func namedFiles(patch []byte) []string {
	var names []string
	for _, line := range bytes.Split(patch, []byte("\n")) {
		text := string(line)
		if !strings.HasPrefix(text, "--- ") && !strings.HasPrefix(text, "+++ ") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimRight(text[4:], "\r"), "\t")
		if _, rest, ok := strings.Cut(name, "/"); ok && name != "/dev/null" {
			names = append(names, rest)
		}
	}
	return names
}
