package harden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"proctor/tasks/gitobj"
)

// keptSettings are all that stays of a repository's configuration: what git needs to read its work
// tree as before, and who commits. Nothing that runs a program, names a remote, holds a credential
// or includes another file.
var keptSettings = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.bare": true, "core.logallrefupdates": true,
	"core.ignorecase": true, "core.precomposeunicode": true, "core.symlinks": true, "core.autocrlf": true, "core.eol": true,
	"core.safecrlf": true, "core.worktree": true, "core.sparsecheckout": true, "core.sparsecheckoutcone": true,
	"core.quotepath": true, "core.checkstat": true, "core.trustctime": true, "core.abbrev": true, "core.sharedrepository": true,
	"extensions.objectformat": true, "extensions.refstorage": true, "extensions.worktreeconfig": true,
	"user.name": true, "user.email": true, "init.defaultbranch": true, "commit.gpgsign": true, "tag.gpgsign": true, "gc.auto": true,
}

// settingKinds names leaks by section; others are configuration.
var settingKinds = map[string]string{"credential": KindCredential, "http": KindCredential, "url": KindCredential}

// harmless settings go without a word: they say how a branch tracks a remote that is named anyway.
var harmless = map[string]bool{"branch.remote": true, "branch.merge": true, "branch.rebase": true, "remote.fetch": true, "submodule.active": true, "maintenance.auto": true}

// noteConfig reports what writeConfig would leave out.
func (r *Repo) noteConfig(from string) error { return r.writeConfig(from, "") }

// writeConfig writes the settings that stay; with no out it only reports the others.
func (r *Repo) writeConfig(from, out string) error {
	for _, name := range []string{"config", "config.worktree"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		settings, err := gitobj.ParseConfig(data)
		if err != nil {
			return err
		}
		var kept []gitobj.Setting
		for _, s := range settings {
			if keptSettings[s.Name()] && s.Subsection == "" {
				kept = append(kept, s)
			} else if !harmless[s.Name()] {
				r.leakSetting(name, s)
			}
		}
		if out == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(out, name), gitobj.FormatConfig(kept), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repo) leakSetting(file string, s gitobj.Setting) {
	name := s.Section + "." + s.Key
	if s.Subsection != "" {
		name = s.Section + "." + clip(s.Subsection) + "." + s.Key
	}
	kind := KindConfig
	if k, ok := settingKinds[s.Section]; ok {
		kind = k
		r.leak(kind, name, fmt.Sprintf("%s sets %s", file, name)) // its value may be a secret
		return
	}
	r.leak(kind, name, fmt.Sprintf("%s sets %s to %.100q", file, name, s.Value))
}

func clip(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return strings.ToValidUTF8(s, "?")
}

// stateFiles are files of a git directory that hold or name later work, with what they are.
var stateFiles = map[string]string{
	"COMMIT_EDITMSG": "the message of the last commit", "MERGE_MSG": "the message of a merge", "SQUASH_MSG": "the message of a squash",
	"rebase-merge": "a rebase under way", "rebase-apply": "a rebase under way", "sequencer": "a cherry-pick under way",
	"lfs": "large files", "annex": "annexed files", "svn": "a Subversion mirror", "objects/info/commit-graph": "a commit graph",
	"objects/info/commit-graphs": "a commit graph", "objects/pack/multi-pack-index": "a multi-pack index", "info/grafts": "grafts", "branches": "old remotes", "remotes": "old remotes",
	"info/attributes": "attributes outside of the history",
}

// leakFiles reports files that are not carried over and could have told something.
func (r *Repo) leakFiles(from string) {
	for name, what := range stateFiles {
		info, err := os.Lstat(filepath.Join(from, name))
		if err != nil || info.IsDir() && emptyDir(filepath.Join(from, name)) {
			continue
		}
		r.leak(KindState, name, name+" holds "+what)
	}
	entries, err := os.ReadDir(filepath.Join(from, "hooks"))
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".sample") {
			r.leak(KindHook, clip(e.Name()), fmt.Sprintf("the hook %.100q would run", e.Name()))
		}
	}
}

func emptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}
