package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"proctor/sandbox"
)

// Commit keeps a sandbox's files as an image under ref, with the ENTRYPOINT, CMD, USER and WORKDIR of the
// image that it was made from, not those of the sandbox. The sandbox stands still meanwhile.
func (e *Engine) Commit(ctx context.Context, id, ref string) (sandbox.Image, error) {
	found, err := e.inspectOurs(ctx, id)
	if err != nil {
		return sandbox.Image{}, err
	}
	base, err := e.cli.ImageInspect(ctx, found.Image)
	if err != nil {
		return sandbox.Image{}, e.wrap("look at the image of "+id, err)
	}
	config := container.Config{}
	if base.Config != nil {
		config.Entrypoint, config.Cmd = base.Config.Entrypoint, base.Config.Cmd
		config.User, config.WorkingDir = base.Config.User, base.Config.WorkingDir
	}
	changes := commitChanges(config, found.Config.Labels)
	if repository, _, _ := strings.Cut(ref, ":"); repository == snapshots {
		changes = append(changes, fmt.Sprintf("LABEL %s=%q", labelSnapshot, e.opts.Owner))
	}
	if _, err := e.cli.ContainerCommit(ctx, found.ID, container.CommitOptions{Reference: ref, Pause: true, Changes: changes}); err != nil {
		return sandbox.Image{}, e.wrap("commit "+id, err)
	}
	return e.localImage(ctx, ref)
}

// commitChanges are Dockerfile lines that give the image its own start back, and blank our labels: a
// container that someone else makes of the image must not look like ours.
func commitChanges(config container.Config, labels map[string]string) []string {
	changes := []string{
		"ENTRYPOINT " + list(config.Entrypoint),
		"CMD " + list(config.Cmd),
		"USER " + or(config.User, "0"),
		"WORKDIR " + or(config.WorkingDir, "/"),
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == labelOwner || strings.HasPrefix(name, labelOwner+".") {
			changes = append(changes, fmt.Sprintf("LABEL %s=%q", name, ""))
		}
	}
	return changes
}

// list writes argv as a Dockerfile does.
func list(argv []string) string {
	if argv == nil {
		argv = []string{}
	}
	text, _ := json.Marshal(argv) // strings always marshal
	return string(text)
}

// or gives text, or instead where it is empty.
func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
