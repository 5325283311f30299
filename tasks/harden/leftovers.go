package harden

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strings"

	"archive/tar"

	"proctor/tasks/gitobj"
)

// pycName takes apart the name of a bytecode file: module, interpreter, optimisation.
var pycName = regexp.MustCompile(`^(.+?)\.[a-z]+-?[0-9]+[a-z]*(\.opt-[0-9a-z]+)?\.pyc$`)

// bytecode reports compiled modules that tell of a source that is hidden, solved or gone, and gives
// them. Those that the start commit tracks stay.
func (h *hardener) bytecode() []string {
	solved := map[string]bool{}
	for _, s := range h.task.Solved {
		solved[path.Join(h.task.Workdir, s)] = true
	}
	var found []string
	for name := range h.survey.names {
		if !strings.HasSuffix(name, ".pyc") || path.Base(path.Dir(name)) != "__pycache__" {
			continue
		}
		m := pycName.FindStringSubmatch(path.Base(name))
		if m == nil {
			continue
		}
		source := path.Join(path.Dir(path.Dir(name)), m[1]+".py")
		if why := h.telling(source, solved); why != "" && !h.isTracked(name) {
			h.leak(KindBytecode, name, "is the bytecode of "+source+", "+why)
			found = append(found, name)
		}
	}
	sort.Strings(found)
	return found
}

func (h *hardener) telling(source string, solved map[string]bool) string {
	for _, hidden := range h.task.Hidden {
		if within(source, hidden) {
			return "which is hidden"
		}
	}
	switch {
	case solved[source]:
		return "which the solution changes"
	case !h.survey.has(source):
		return "which is gone"
	}
	return ""
}

func (h *hardener) dropBytecode(ctx context.Context) error { return h.remove(ctx, h.bytecode()...) }

// cachePlaces are where package managers keep what they fetched, below a home.
var cachePlaces = []string{".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/pipenv", ".npm/_cacache", ".cache/yarn", ".yarn/cache", ".cache/go-build"}

// presentCaches reports package caches and gives their places.
func (h *hardener) presentCaches(ctx context.Context) []string {
	users := []string{"/root"}
	for name := range h.survey.names {
		if path.Dir(name) == "/home" {
			users = append(users, name)
		}
	}
	sort.Strings(users)
	var there []string
	for _, home := range users {
		for _, place := range cachePlaces {
			cache := path.Join(home, place)
			if _, err := h.box.Stat(ctx, cache); err == nil {
				h.leak(KindCache, cache, "keeps packages that were fetched while building")
				there = append(there, cache)
			}
		}
	}
	return there
}

func (h *hardener) dropCaches(ctx context.Context) error {
	return h.remove(ctx, h.presentCaches(ctx)...)
}

// credentialFiles hold secrets for fetching.
var credentialFiles = []string{".git-credentials", ".config/git/credentials", ".netrc", ".config/gh", ".pypirc"}

// gitConfigs are the configurations that git reads beside a repository's own.
var gitConfigs = []string{"/etc/gitconfig", "/root/.gitconfig", "/root/.config/git/config"}

// credentials reports what could be used to fetch as somebody, and gives the files.
func (h *hardener) credentials(ctx context.Context) ([]string, error) {
	var there []string
	for _, name := range credentialFiles {
		file := path.Join("/root", name)
		if _, err := h.box.Stat(ctx, file); err == nil {
			h.leak(KindCredential, file, "may hold credentials")
			there = append(there, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return there, nil
}

func (h *hardener) dropCredentials(ctx context.Context) error {
	files, err := h.credentials(ctx)
	if err != nil {
		return err
	}
	if err := h.remove(ctx, files...); err != nil {
		return err
	}
	for _, file := range gitConfigs {
		if err := h.cleanConfig(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// telltale are sections of a user's configuration that name remotes or secrets, or lead elsewhere.
var telltale = map[string]bool{"credential": true, "http": true, "url": true, "include": true, "includeif": true, "remote": true}

func (h *hardener) cleanConfig(ctx context.Context, file string) error {
	data, err := h.box.ReadFile(ctx, file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	settings, err := gitobj.ParseConfig(data)
	if err != nil {
		h.leak(KindConfig, file, "cannot be read: "+err.Error())
		return h.remove(ctx, file)
	}
	var kept []gitobj.Setting
	for _, s := range settings {
		if telltale[s.Section] {
			h.leak(KindCredential, file, "sets "+s.Section+"."+s.Key)
		} else {
			kept = append(kept, s)
		}
	}
	if len(kept) == len(settings) {
		return nil
	}
	return h.box.Push(ctx, path.Dir(file), oneFile(path.Base(file), gitobj.FormatConfig(kept)))
}

func oneFile(name string, data []byte) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}) // into memory: cannot fail
	_, _ = w.Write(data)
	_ = w.Close()
	return &b
}
