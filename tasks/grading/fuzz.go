package grading

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"proctor/sandbox"
)

// fuzzIn gives the last rung of the ladder: the image's own patch program, in a scratch folder of the
// fresh sandbox. GNU patch has had holes that let a patch write elsewhere, so it never runs on the
// host, and only names that the patch could honestly write come back.
func fuzzIn(session sandbox.Session) fuzzer {
	return func(ctx context.Context, patch []byte, before map[string][]byte) (map[string][]byte, error) {
		const scratch = "/tmp/proctor-apply"
		if err := must(ctx, session, []string{"mkdir", "-p", scratch + "/tree"}); err != nil {
			return nil, err
		}
		defer func() {
			_, _ = session.Exec(context.WithoutCancel(ctx), sandbox.Exec{Argv: []string{"rm", "-rf", scratch}, Dir: "/", User: "root", Timeout: time.Minute})
		}()
		members := []member{{name: "change.patch", mode: "100644", content: patch}}
		for name, content := range before {
			members = append(members, member{name: path.Join("tree", name), mode: "100644", content: content})
		}
		if err := push(ctx, session, scratch, members); err != nil {
			return nil, err
		}
		res, err := session.Exec(ctx, sandbox.Exec{
			Argv: []string{"patch", "-p1", "--batch", "--forward", "--fuzz=5", "--no-backup-if-mismatch", "--reject-file=-",
				"-d", scratch + "/tree", "-i", scratch + "/change.patch"},
			Dir: "/", User: "root", Timeout: time.Minute,
		})
		if errors.Is(err, sandbox.ErrStart) {
			return nil, errors.New("the image has no patch program")
		}
		if err != nil {
			return nil, err
		}
		if res.Exit == nil || *res.Exit != 0 {
			return nil, fmt.Errorf("patch: %s", clip(string(res.Stdout)+string(res.Stderr), 500))
		}
		return pullFiles(ctx, session, scratch+"/tree")
	}
}

// pullFiles gives the regular files below a folder.
func pullFiles(ctx context.Context, session sandbox.Session, dir string) (map[string][]byte, error) {
	stream, err := session.Pull(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	files, total := map[string][]byte{}, int64(0)
	for in := tar.NewReader(stream); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name, ok := treePath(header.Name)
		if !ok || header.Typeflag != tar.TypeReg || strings.HasSuffix(name, ".orig") {
			continue
		}
		if total += header.Size; total > maxPatch {
			return nil, ErrTooBig
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, in); err != nil {
			return nil, err
		}
		files[name] = content.Bytes()
	}
}
