package normalize

import (
	"path"
	"strings"

	"proctor/rules"
)

// tool reads a call of a file tool.
func (r *run) tool(c Call) {
	p := r.abs(c.Path)
	switch c.Tool {
	case "view":
		r.ev.Call.Text = c.Path
		if c.Path != "" {
			r.addFile(rules.File{Op: "view", Path: p})
		}
	case "create":
		r.ev.Call.Text = c.Path + "\n" + clip(c.File, maxContent)
		before := r.contentOf(p)
		r.edit(rules.File{Op: "create", Path: p, Content: clip(c.File, maxContent), Added: clip(c.File, maxContent), Before: before.s}, true)
	case "str_replace":
		r.ev.Call.Text = strings.Join([]string{c.Path, clip(c.Old, maxContent), clip(c.New, maxContent)}, "\n")
		before := r.contentOf(p)
		fl := rules.File{Op: "edit", Path: p, Before: before.s}
		fl.Removed, fl.Added = changed(clip(c.Old, maxContent), clip(c.New, maxContent))
		if before.known && strings.Count(before.s, c.Old) == 1 {
			fl.Content = clip(strings.Replace(before.s, c.Old, c.New, 1), maxContent)
		}
		r.edit(fl, fl.Content != "")
	case "insert":
		r.ev.Call.Text = c.Path + "\n" + clip(c.New, maxContent)
		before := r.contentOf(p)
		fl := rules.File{Op: "edit", Path: p, Added: clip(c.New, maxContent), Before: before.s}
		if before.known {
			fl.Content = insertAt(before.s, c.Line, c.New)
		}
		r.edit(fl, fl.Content != "")
	default:
		r.ev.Call.Text = strings.TrimSpace(strings.Join([]string{c.Path, c.Command, c.Text}, "\n"))
	}
}

// changed gives the lines of old that new lacks and the lines of new that old lacks.
func changed(old, new string) (removed, added string) {
	return missingLines(old, new), missingLines(new, old)
}

func missingLines(a, b string) string {
	have := map[string]int{}
	for _, l := range strings.Split(b, "\n") {
		have[l]++
	}
	var out []string
	for _, l := range strings.Split(a, "\n") {
		if have[l] > 0 {
			have[l]--
			continue
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

func insertAt(text string, line int, add string) string {
	lines := strings.SplitAfter(text, "\n")
	if line < 0 || line > len(lines) {
		return ""
	}
	if add != "" && !strings.HasSuffix(add, "\n") {
		add += "\n"
	}
	return clip(strings.Join(lines[:line], "")+add+strings.Join(lines[line:], ""), maxContent)
}

// edit records a file that the call changes, and what it then holds where that is known.
func (r *run) edit(fl rules.File, whole bool) {
	if fl.Path == "" || fl.Path[0] != '/' {
		if fl.Path != "" {
			r.addFile(fl)
		}
		return
	}
	fl.Path = r.follow(fl.Path)
	old, had := r.st.files.get(fl.Path)
	made := old.made
	if !had {
		made = r.isNew(fl.Path, fl.Op)
	}
	fl.New = made
	if state := r.pathState(fl.Path); !made && (state == PathVisible || state == PathHidden) {
		fl.There = true
	}
	if had && fl.Before == "" && old.whole {
		fl.Before = old.content
	}
	seen := fl
	if fl.Op != "delete" && fl.Op != "link" {
		if more := r.assembled(fl.Path, fl.Added); more != "" {
			seen.Added += "\n" + more
		}
	}
	r.addFile(seen)
	if fl.Op != "delete" && fl.Op != "link" && fl.Added != "" {
		r.writtenCode(fl.Path, fl.Added, fl.Content)
	}
	next := file{made: made, run: true}
	switch fl.Op {
	case "create":
		next.content, next.whole = fl.Content, whole
	case "append":
		next.content, next.whole = clip(old.content+fl.Added, maxContent), old.whole && whole
		if !had && made {
			next.whole = whole
		}
	case "edit":
		next.content, next.whole = fl.Content, whole && fl.Content != ""
		if !next.whole {
			next.content = clip(old.content+"\n"+fl.Added, maxContent)
		}
	case "delete":
		r.st.files.set(fl.Path, file{made: made})
		r.st.links.del(fl.Path)
		return
	default:
		return
	}
	r.st.files.set(fl.Path, next)
}

// isNew tells whether a file that is about to be written was not there when the rollout started.
func (r *run) isNew(p, op string) bool {
	switch r.pathState(p) {
	case PathAbsent:
		return true
	case PathVisible, PathHidden:
		return false
	}
	if r.n.task.namesTest(p) {
		return false // the task speaks of it as something that is there
	}
	if strings.ContainsAny(p, "*?[$") {
		return false // it stands for files that are there, or its name is not known
	}
	// A folder that is known to be absent makes what lies in it new.
	for d := path.Dir(p); d != "/" && d != "."; d = path.Dir(d) {
		if r.pathState(d) == PathAbsent {
			return true
		}
	}
	if _, ok := r.facts.Read(r.context(), p, 1); ok {
		return false
	}
	// Unknown: a file written whole is taken for a new one, an edited one for an old one.
	return op == "create" || op == "link"
}

func (r *run) addFile(fl rules.File) {
	if len(r.ev.Files) >= maxWords {
		return
	}
	fl.Hidden = r.hidden(fl.Path)
	fl.Test = r.n.task.isTest(fl.Path)
	fl.InTree = r.n.task.inTree(fl.Path)
	fl.Asked = r.n.task.asks(fl.Path)
	fl.Copy = r.isCopy(fl.Path)
	fl.Grader = !fl.InTree && graderPlace(fl.Path) || sitePackages(fl.Path)
	r.ev.Files = append(r.ev.Files, fl)
}

// graderPlace tells whether a path outside the work tree is one where graders look or from which
// they start programs.
func graderPlace(p string) bool {
	for _, d := range [...]string{
		"/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/bin",
		"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/environment", "/etc/ld.so.preload", "/etc/ld.so.conf.d",
		"/etc/cron.d", "/etc/crontab", "/var/spool/cron", "/etc/init.d", "/etc/systemd", "/lib", "/usr/lib", "/usr/local/lib",
		"/logs", "/etc/sitecustomize.py", "/etc/pip.conf", "/etc/gitconfig", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf",
	} {
		if rules.Below(p, d) {
			return true
		}
	}
	home := ""
	if rest, ok := strings.CutPrefix(p, "/root/"); ok {
		home = rest
	} else if rest, ok := strings.CutPrefix(p, "/home/"); ok {
		_, home, _ = strings.Cut(rest, "/")
	}
	switch home {
	case ".bashrc", ".profile", ".bash_profile", ".zshrc", ".pythonrc", ".pypirc", ".npmrc", ".gitconfig", ".pdbrc":
		return true
	}
	return strings.HasPrefix(home, ".local/bin/") || strings.HasPrefix(home, ".config/pip")
}

func sitePackages(p string) bool {
	return strings.Contains(p, "/site-packages/") || strings.Contains(p, "/dist-packages/") ||
		strings.HasSuffix(p, "/site-packages") || strings.HasSuffix(p, "/dist-packages")
}
