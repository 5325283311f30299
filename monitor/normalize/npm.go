package normalize

import (
	"encoding/json"
	"regexp"
	"strings"
)

// npmRun reads the script of package.json that npm, yarn or pnpm would run.
func (r *run) npmRun(args []arg, f frame) {
	name := ""
	for _, a := range args[1:] {
		switch {
		case strings.HasPrefix(a.s, "-"):
		case a.s == "run" || a.s == "run-script":
		case a.s == "t" || a.s == "tst":
			name = "test"
		default:
			name = a.s
		}
		if name != "" {
			break
		}
	}
	if name == "" {
		return
	}
	scripts := packageScripts(r.contentOf(r.abs("package.json")).s)
	for _, n := range [...]string{"pre" + name, name, "post" + name} {
		if text := scripts[n]; text != "" {
			r.source(&unit{src: text}, f, val{})
		}
	}
}

func packageScripts(text string) map[string]string {
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	if text == "" || json.Unmarshal([]byte(text), &p) != nil {
		return nil
	}
	return p.Scripts
}

// writtenCode reads code that a call writes to a file, so that what it will do is seen when it is
// written; "via" says that it has not run.
func (r *run) writtenCode(p, added, whole string) {
	if r.depth >= maxDepth || added == "" {
		return
	}
	f := frame{unit: &unit{}, via: []string{"written:" + p}}
	name := base(p)
	switch {
	case name == "package.json":
		r.writtenJSON(added, f)
	case name == "Makefile" || name == "makefile" || name == "GNUmakefile" || strings.HasSuffix(name, ".mk"):
		for i, line := range strings.Split(added, "\n") {
			if strings.HasPrefix(line, "\t") && i < 200 {
				r.quiet(func() { r.source(&unit{src: strings.TrimLeft(strings.TrimSpace(line), "@-+")}, f, val{}) })
			}
		}
	case p == "/etc/crontab" || strings.HasPrefix(p, "/etc/cron.d/"):
		f.via = []string{"cron"}
		for i, line := range strings.Split(added, "\n") {
			if fs := strings.Fields(line); len(fs) > 6 && i < maxLoop && fs[0][0] != '#' {
				r.quiet(func() { r.source(&unit{src: strings.Join(fs[6:], " ")}, f, val{}) })
			}
		}
	case name == "tox.ini" || strings.HasPrefix(name, "requirements") && strings.HasSuffix(name, ".txt"):
	default:
		text := added
		if whole != "" && whole == added {
			text = whole
		}
		switch lang := langOf(p, text); lang {
		case "":
		case "sh":
			r.quiet(func() { r.source(&unit{src: text}, f, val{}) })
		default:
			r.script(p, lang, text, f)
		}
	}
}

// writtenJSON reads the values of a package.json fragment as commands.
func (r *run) writtenJSON(added string, f frame) {
	for i, line := range strings.Split(added, "\n") {
		if i > 100 {
			return
		}
		for _, m := range jsonPair.FindAllStringSubmatch(line, 16) {
			if !strings.Contains(m[1], " ") {
				continue
			}
			r.quiet(func() { r.source(&unit{src: strings.ReplaceAll(m[1], `\"`, `"`)}, f, val{}) })
		}
	}
}

// jsonPair is a name and a text of a JSON object, on one line.
var jsonPair = regexp.MustCompile(`"[\w:.-]+"\s*:\s*"((?:[^"\\]|\\.)*)"`)

// quiet reads something whose effects have not happened: the shell's state and the event's files are
// put back, and failing to parse it is no fault of the call.
func (r *run) quiet(read func()) {
	files, opaque, notes := len(r.ev.Files), r.ev.Opaque, len(r.ev.Notes)
	sc, fs, ls := r.st.enter(), r.st.files.save(), r.st.links.save()
	refs, aliases := r.st.ownRefs.save(), r.st.gitAlias.save()
	read()
	r.st.leave(sc)
	r.st.files.restore(fs)
	r.st.links.restore(ls)
	r.st.ownRefs.restore(refs)
	r.st.gitAlias.restore(aliases)
	r.ev.Files = r.ev.Files[:files]
	if !r.out {
		r.ev.Opaque, r.ev.Notes = opaque, r.ev.Notes[:notes]
	}
}
