package normalize

import (
	"path"
	"strings"

	"proctor/rules"
)

// effects reads what a program does to files.
func (r *run) effects(i int, args []arg, f frame, in val) {
	cmd := &r.ev.Commands[i]
	name := cmd.Program
	ops := operands(name, args[1:])
	before := len(r.ev.Files)
	switch name {
	case "tee", "sponge":
		op := "create"
		if hasFlag(args, "a", "--append") {
			op = "append"
		}
		for _, a := range ops {
			fl := rules.File{Op: op, Path: r.abs(a.s)}
			r.written(&fl, in)
		}
	case "sed":
		r.sed(args)
	case "cp", "install", "mv", "ln", "rsync", "scp":
		r.transfer(name, args, ops, in)
	case "rm", "unlink", "shred", "rmdir":
		for _, a := range ops {
			r.remove(a, hasFlag(args, "rR", "--recursive"))
		}
	case "find":
		if hasFlag(args, "", "-delete") {
			for _, a := range findRoots("find", args[1:]) {
				r.edit(rules.File{Op: "delete", Path: r.abs(a.s + "/*")}, false)
			}
		}
	case "touch", "truncate":
		for _, a := range ops {
			op := "append"
			if name == "truncate" {
				op = "edit"
			}
			if _, known := r.st.files.get(r.abs(a.s)); !known && name == "touch" && r.pathState(r.abs(a.s)) != PathVisible {
				op = "create"
			}
			r.edit(rules.File{Op: op, Path: r.abs(a.s)}, op == "create")
		}
	case "chmod", "chown", "chattr", "setfacl":
		for n, a := range ops {
			if n > 0 {
				r.edit(rules.File{Op: "chmod", Path: r.abs(a.s)}, false)
			}
		}
	case "dd":
		if v, ok := operandValue(args, "of="); ok {
			r.edit(rules.File{Op: "create", Path: r.abs(v)}, false)
		}
	case "mkdir":
		for _, a := range ops {
			p := r.follow(r.abs(a.s))
			if _, ok := r.st.files.get(p); !ok && r.isNew(p, "create") {
				r.st.files.set(p, file{made: true})
			}
		}
	case "patch", "git":
		r.patch(name, args, in)
	case "curl", "wget", "aria2c":
		if v, ok := optionValue(args, "-o", "--output", "-O", "--output-document"); ok && v.s != "-" && !strings.Contains(v.s, "://") {
			r.edit(rules.File{Op: "create", Path: r.abs(v.s)}, false)
		}
	case "gcc", "cc", "clang", "g++", "go", "tar", "unzip", "sort":
		if v, ok := optionValue(args, "-o", "--output"); ok && name != "tar" && name != "unzip" {
			r.edit(rules.File{Op: "create", Path: r.abs(v.s)}, false)
		}
	case "ed", "ex", "vi", "vim", "nvim":
		if in.s != "" || hasFlag(args, "cs") {
			for _, a := range ops {
				if !strings.HasPrefix(a.s, "+") && strings.Contains(a.s, ".") && strings.IndexByte(a.s, ' ') < 0 && strings.Contains(in.s, "w") {
					r.edit(rules.File{Op: "edit", Path: r.abs(a.s), Added: in.s, Removed: in.s}, false)
				}
			}
		}
	case "crontab":
		if in.s != "" {
			r.edit(rules.File{Op: "create", Path: "/var/spool/cron/root", Added: in.s, Content: in.s}, in.known)
		}
	}
	cmd = &r.ev.Commands[i]
	for _, fl := range r.ev.Files[before:] {
		if fl.Op != "view" {
			cmd.Writes = appendNew(cmd.Writes, fl.Path)
			if fl.Hidden {
				cmd.Hidden = appendNew(cmd.Hidden, fl.Path)
			}
		}
	}
}

func operandValue(args []arg, prefix string) (string, bool) {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a.s, prefix); ok {
			return v, true
		}
	}
	return "", false
}

// transfer is cp, mv, ln and install: targets are written, sources of a move are gone, links and
// copies of hidden things lead where their source does.
func (r *run) transfer(name string, args, ops []arg, in val) {
	dest := ""
	if v, ok := optionValue(args, "-t", "--target-directory"); ok {
		dest = v.s
	} else if len(ops) > 1 {
		dest = ops[len(ops)-1].s
		ops = ops[:len(ops)-1]
	} else if name == "ln" && len(ops) == 1 {
		dest = "."
	}
	if dest == "" {
		return
	}
	to := r.abs(dest)
	folder := len(ops) > 1 || strings.HasSuffix(dest, "/") || dest == "." || dest == ".." || r.isFolder(to)
	for _, src := range ops {
		from := r.abs(src.s)
		target := to
		if folder {
			target = path.Join(to, path.Base(from))
		}
		hidden := r.hidden(from) || src.glob != "" && r.globIsHidden(src)
		fl := rules.File{Op: "create", Path: target}
		switch name {
		case "ln":
			fl.Op = "link"
			fl.Added = src.s
			r.edit(fl, false)
			linkTo := src.s
			if !hasFlag(args, "s", "--symbolic") {
				linkTo = from
			} else if !strings.HasPrefix(linkTo, "/") && hasFlag(args, "r", "--relative") {
				linkTo = from
			}
			r.link(target, linkTo)
			continue
		case "mv":
			r.remove(src, true)
		}
		content := r.contentOf(from)
		if from == "/dev/stdin" || from == "/proc/self/fd/0" || from == "/dev/fd/0" {
			content = in
		}
		if content.known && !hidden {
			fl.Content, fl.Added = content.s, content.s
		}
		r.edit(fl, content.known && !hidden)
		if hidden {
			r.st.links.set(target, from)
		}
	}
}

func (r *run) globIsHidden(a arg) bool {
	var hidden, covers []string
	r.globHidden(&hidden, &covers, absFrom(r.st.cwd, a.glob))
	return len(hidden) > 0
}

// isFolder guesses whether a path is a folder: something known lies below it, or a name that has no
// dot and stands for one by custom.
func (r *run) isFolder(p string) bool {
	if p == "/" || p == "/tmp" || p == r.st.cwd || p == r.n.task.workdir {
		return true
	}
	found := false
	r.st.files.each(func(q string, _ file) bool {
		found = q != p && rules.Below(q, p)
		return !found
	})
	return found
}

// link records that a path now leads elsewhere.
func (r *run) link(p, target string) {
	if p == "" || target == "" || p == target {
		return
	}
	r.st.links.set(p, target)
}

// remove records a deleted file; a pattern deletes what it names.
func (r *run) remove(a arg, recursive bool) {
	p := r.abs(a.s)
	if a.glob == "" {
		r.edit(rules.File{Op: "delete", Path: p}, false)
		if recursive {
			r.removeBelow(p)
		}
		return
	}
	names := r.matches(a)
	made := len(names) > 0
	for _, m := range names {
		fl, _ := r.st.files.get(r.abs(m))
		made = made && fl.made
		r.edit(rules.File{Op: "delete", Path: r.abs(m)}, false)
	}
	if !made {
		fl := rules.File{Op: "delete", Path: p}
		state := r.pathState(p)
		fl.New, fl.There = state == PathAbsent, state == PathVisible || state == PathHidden
		r.addFile(fl)
	}
}

func (r *run) removeBelow(p string) {
	var gone []string
	r.st.files.each(func(q string, _ file) bool {
		if q != p && rules.Below(q, p) {
			gone = append(gone, q)
		}
		return len(gone) < 64
	})
	for _, q := range gone {
		fl, _ := r.st.files.get(q)
		r.st.files.set(q, file{made: fl.made})
	}
}

// patch records the files that patch and git apply change, from the diff on stdin or in a file.
func (r *run) patch(name string, args []arg, in val) {
	text := in.s
	strip := 0
	if name == "git" {
		if len(args) < 2 || args[1].s != "apply" && args[1].s != "am" {
			r.gitFiles(args)
			return
		}
		strip = 1
	}
	for i, a := range args[1:] {
		switch {
		case strings.HasPrefix(a.s, "-p") && len(a.s) == 3:
			strip = int(a.s[2] - '0')
		case a.s == "-i" && i+2 < len(args):
			text = r.contentOf(r.abs(args[i+2].s)).s
		case !strings.HasPrefix(a.s, "-") && a.s != "apply" && a.s != "am" && text == "":
			text = r.contentOf(r.abs(a.s)).s
		}
	}
	for _, fl := range diffFiles(text, strip) {
		fl.Path = r.abs(fl.Path)
		r.edit(fl, false)
	}
}

// diffFiles reads a unified diff into edits with added and removed lines, at most 64 files.
func diffFiles(text string, strip int) []rules.File {
	var out []rules.File
	var cur *rules.File
	old := ""
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "--- "):
			old = diffName(line[4:], strip)
			cur = nil
		case strings.HasPrefix(line, "+++ ") && len(out) < 64:
			fl := rules.File{Op: "edit", Path: diffName(line[4:], strip)}
			switch {
			case fl.Path == "":
				fl.Op, fl.Path = "delete", old
			case old == "":
				fl.Op = "create"
			}
			out = append(out, fl)
			cur = &out[len(out)-1]
		case cur == nil:
		case strings.HasPrefix(line, "+"):
			cur.Added += line[1:] + "\n"
		case strings.HasPrefix(line, "-"):
			cur.Removed += line[1:] + "\n"
		}
	}
	return out
}

func diffName(s string, strip int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\t")
	if s == "/dev/null" {
		return ""
	}
	for range strip {
		if i := strings.IndexByte(s, '/'); i >= 0 {
			s = s[i+1:]
		}
	}
	return s
}

// gitFiles records the files that git rm and git mv take away.
func (r *run) gitFiles(args []arg) {
	if len(args) < 3 || args[1].s != "rm" && args[1].s != "mv" {
		return
	}
	ops := operands("git", args[2:])
	if args[1].s == "mv" && len(ops) > 1 {
		ops = ops[:len(ops)-1]
	}
	for _, a := range ops {
		r.remove(a, true)
	}
}
