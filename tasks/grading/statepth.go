package grading

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"proctor/sandbox"
)

// A .pth file beside installed packages leads Python to more folders of modules; an editable install makes one. What Python
// and the runner take by name, they take from there too, and a scan that follows every such path would read the whole
// sandbox. So the folders that the agent's .pth files name are looked through for those names alone.

// maxLed bounds the folders that are looked through.
const maxLed = 256

// ledTo gives the folders, clean and absolute, that a .pth file at name leads to. Lines with code are not its affair.
func ledTo(name string, f found) []string {
	var dirs []string
	for line := range strings.Lines(string(f.text)) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
		if line == "" || line[0] == '#' {
			continue
		}
		dir := line
		if !path.IsAbs(dir) {
			dir = path.Join("/", path.Dir(name), dir)
		}
		dirs = append(dirs, path.Clean(dir))
	}
	return dirs
}

// isMetadata reports whether a path is what Python knows a package or more folders by: led elsewhere it would be read there.
func isMetadata(name string) bool {
	rest, ok := inSite(name)
	if !ok {
		return false
	}
	for _, end := range []string{".pth", ".dist-info", ".egg-info", "/entry_points.txt"} {
		if strings.HasSuffix(rest, end) {
			return true
		}
	}
	return false
}

// clearLed takes out of the folders that the agent's .pth files lead to what Python runs at its start, what registers a
// plugin with the runner, and what takes the place of the runner's modules; and the .pth files that lead to no folder, for an
// archive is looked into as well. led is the .pth file by folder.
func (p statePolicy) clearLed(ctx context.Context, image, state sandbox.Session, led map[string]string, notes *noteList) error {
	if len(led) > maxLed {
		return fmt.Errorf("%w: .pth files lead to over %d folders", errForged, maxLed)
	}
	for dir, pth := range led {
		if below(strings.TrimPrefix(dir, "/"), p.keep) {
			continue
		}
		found, err := listLed(ctx, state, dir)
		if err != nil {
			return err
		}
		if found == nil {
			notes.add("took out /%s: it leads Python to %s, which is no folder", pth, dir)
			if err := remove(ctx, state, "/", []string{pth}); err != nil {
				return err
			}
			continue
		}
		var gone []string
		for _, name := range found {
			if _, err := image.Stat(ctx, path.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
				gone = append(gone, name)
				notes.add("took out %s: /%s leads Python to it", path.Join(dir, name), pth)
			}
		}
		if err := remove(ctx, state, dir, gone); err != nil {
			return err
		}
	}
	return nil
}

// listLed gives the entries of a folder that steer Python or the runner, not nil; nil where there is no folder. The image's
// own programs are back in their places when it is asked.
func listLed(ctx context.Context, state sandbox.Session, dir string) ([]string, error) {
	const script = `[ -e "$0" ] || exit 0; [ -d "$0" ] || exit 4; cd "$0" || exit 4
for f in * .*; do if grep -q pytest11 "$f/entry_points.txt" 2>/dev/null; then printf 'p%s\0' "$f"; else printf 'n%s\0' "$f"; fi; done`
	res, err := state.Exec(ctx, sandbox.Exec{Argv: []string{"/bin/sh", "-c", script, dir}, Dir: "/", User: "0", Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	switch {
	case res.Truncated:
		return nil, fmt.Errorf("%w: /%s holds more than can be looked through", errForged, strings.TrimPrefix(dir, "/"))
	case res.Exit == nil || *res.Exit != 0:
		return nil, nil
	}
	out := []string{}
	for entry := range strings.SplitSeq(string(res.Stdout), "\x00") {
		if len(entry) < 2 {
			continue
		}
		name := entry[1:]
		if why, _ := pythonHook(name, found{}); why != "" || entry[0] == 'p' {
			out = append(out, name)
		}
	}
	return out, nil
}
