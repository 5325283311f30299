package grading

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode"

	"proctor/sandbox"
)

// A .pth file beside installed packages leads Python to more folders of modules; an editable install makes one. What Python
// and the runner take by name, they take from there too, and a scan that follows every such path would read the whole
// sandbox. So the folders that the agent's .pth files name are looked through for those names alone.

// maxLed bounds the folders that are looked through.
const maxLed = 256

// oddPth reports whether the lines of a .pth file depend on who reads them: versions of Python disagree on what ends a line,
// on marks at a file's start and on blanks at a line's end. No installer writes such files.
func oddPth(text []byte) bool {
	return bytes.ContainsFunc(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), func(r rune) bool {
		return r != '\n' && r != '\t' && r != ' ' && (unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff')
	})
}

// ledTo gives the folders, clean and absolute, that a .pth file at name leads to. Lines with code are not its affair.
func ledTo(name string, f found) []string {
	var dirs []string
	for line := range strings.Lines(string(f.text)) {
		line = strings.TrimRight(line, " \t\r\n")
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
	rest, ok := inSite(strings.ToLower(name)) // as Python does
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
// archive is looked into as well. led is the .pth file by folder; before is what the image has.
func (p statePolicy) clearLed(ctx context.Context, image, state sandbox.Session, led map[string]string, before map[string]found, notes *noteList) error {
	if len(led) > maxLed {
		return fmt.Errorf("%w: .pth files lead to over %d folders", errForged, maxLed)
	}
	var gone []string
	for dir, pth := range led {
		if below(strings.TrimPrefix(dir, "/"), p.keep) {
			continue
		}
		names, folder, err := steeringIn(ctx, state, dir)
		if err != nil {
			return err
		}
		if !folder {
			gone = append(gone, pth)
			notes.add("took out /%s: it leads Python to %s, which is no folder", pth, dir)
		}
		for _, name := range names {
			if _, err := image.Stat(ctx, path.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
				gone = append(gone, path.Join(dir, name)[1:])
				notes.add("took out %s: /%s leads Python to it", path.Join(dir, name), pth)
			}
		}
	}
	return p.takeOut(ctx, state, gone, before)
}

// steeringIn gives the entries of a folder that steer Python or the runner by their names, or by what they register.
func steeringIn(ctx context.Context, state sandbox.Session, dir string) (names []string, folder bool, err error) {
	entries, folder, err := entriesOf(ctx, state, dir, `if grep -q pytest11 "$f/entry_points.txt" 2>/dev/null; then printf '%s/\0' "$f"; else printf '%s\0' "$f"; fi`)
	for _, entry := range entries {
		name, plugin := strings.CutSuffix(entry, "/")
		if why, _ := pythonHook(name, found{}); why != "" || plugin {
			names = append(names, name)
		}
	}
	return names, folder, err
}

// entriesOf gives what a script of the shell's prints, each text ended by a NUL, of every entry $f of a folder but itself and
// the one above; folder is false where something else is there. The image's own programs are back in their places when it
// is asked.
func entriesOf(ctx context.Context, state sandbox.Session, dir, script string) (printed []string, folder bool, err error) {
	const each = `[ -e "$0" ] || exit 0; cd "$0" || exit 4; for f in * .*; do [ "$f" = . ] || [ "$f" = .. ] || { %s; }; done`
	res, err := state.Exec(ctx, sandbox.Exec{Argv: []string{"/bin/sh", "-c", fmt.Sprintf(each, script), dir}, Dir: "/", User: "0", Timeout: time.Minute})
	switch {
	case err != nil:
		return nil, false, err
	case res.Truncated:
		return nil, false, fmt.Errorf("%w: %s holds more than can be looked through", errForged, dir)
	case res.Exit == nil || *res.Exit != 0:
		return nil, false, nil
	}
	printed = strings.Split(string(res.Stdout), "\x00")
	return printed[:len(printed)-1], true, nil
}
