package normalize

import (
	"path"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// What is typed into a background command is read as part of that command: what came before on the same line, what
// the lines before set, and what the program makes of lines. An agent that types a command in pieces, corrects it
// on the way, or lets a key repeat it has typed it all the same.
//
// Every text is read as shell, whatever the program, since any program may hand it to one; and where the program
// has a language of its own also as that.

const (
	typedLimit   = 16 << 10 // bytes of earlier lines that are kept of a command
	handlesLimit = 256      // commands that lines are kept of
)

// typing is what was typed into one background command.
type typing struct {
	command string
	cwd     string // where it was started
	tty     bool
	line    lineEditor
	raw     string   // what was typed since the last line's end, byte by byte
	entered []string // lines, oldest first
	open    int      // how many of the last lines are no whole command yet
}

// Started tells that call, a bash call, left a command behind that handle stands for; tty says whether it has a
// terminal. It is to be called after Observe.
func (n *Normalizer) Started(handle string, call Call, tty bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.typed == nil {
		n.typed = map[string]*typing{}
	}
	if len(n.typed) < handlesLimit {
		n.typed[handle] = &typing{command: call.Command, cwd: n.state.cwd, tty: tty}
	}
}

// typingOf gives what was typed into handle so far; of an unknown one nothing. The lock is held.
func (n *Normalizer) typingOf(handle string) *typing {
	if t := n.typed[handle]; t != nil {
		return t
	}
	return &typing{cwd: n.state.cwd}
}

// keepTyped takes up that call was typed. The lock is held.
func (n *Normalizer) keepTyped(call Call) {
	if t := n.typed[call.Handle]; t != nil && call.Tool == "bash_input" {
		next, entered := t.feed(call.Text)
		next.add(entered)
		n.typed[call.Handle] = &next
	}
}

// feed gives t with text typed, and the lines that this entered.
func (t *typing) feed(text string) (next typing, entered []string) {
	next = *t
	next.line = t.line.clone()
	if t.tty {
		entered = next.line.feed(text, t.entered, langOrConsole(t.program()) == asEditor)
	} else {
		lines := strings.Split(string(t.line.text)+text, "\n")
		entered = lines[:len(lines)-1]
		next.line.set(clip(lines[len(lines)-1], lineLimit))
	}
	next.raw = t.raw + text
	if i := strings.LastIndexAny(next.raw, "\r\n"); i >= 0 {
		next.raw = next.raw[i+1:]
	}
	next.raw = next.raw[max(0, len(next.raw)-lineLimit):]
	return next, entered
}

// add keeps entered lines.
func (t *typing) add(entered []string) {
	t.entered = append(t.entered[:len(t.entered):len(t.entered)], entered...)
	t.open += len(entered)
	size := 0
	for i := len(t.entered) - 1; i >= 0; i-- {
		if size += len(t.entered[i]) + 1; size > typedLimit {
			t.entered = append([]string(nil), t.entered[i+1:]...)
			break
		}
	}
	t.open = min(t.open, len(t.entered))
	open := lines(t.entered[len(t.entered)-t.open:])
	if _, err := syntax.NewParser().Parse(strings.NewReader(open), ""); !syntax.IsIncomplete(err) && !strings.HasSuffix(open, "\\\n") {
		t.open = 0
	}
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

// input reads a bash_input call and gives its text: the lines that it is part of.
func (r *run) input(call Call) string {
	t := r.n.typingOf(call.Handle)
	next, entered := t.feed(call.Text)
	whole := len(t.entered) - t.open
	text := lines(append(append([]string(nil), t.entered[whole:]...), entered...)) + string(next.line.text)
	raw := t.raw + call.Text
	if next.line.unsure {
		r.opaque("typed with keys whose effect is not known")
	}
	sc := r.st.enter()
	defer r.st.leave(sc)
	if t.command != "" {
		r.st.cwd = t.cwd
	}
	r.silently(lines(t.entered[:whole]))
	r.shell(text)
	if plain := strings.ReplaceAll(raw, "\r", "\n"); t.tty && !strings.Contains(text, plain) { // it may have been taken byte by byte
		r.shell(plain)
		text += "\n" + plain
	}
	r.inLanguage(t.program(), lines(t.entered[:whole])+text)
	return text
}

// silently reads shell source for what it sets, and leaves the event as it is. Files that it writes were taken up
// when it was typed.
func (r *run) silently(text string) {
	if text == "" {
		return
	}
	ev, files, links := *r.ev, r.st.files.save(), r.st.links.save()
	r.source(&unit{src: text}, frame{name: "bash"}, val{})
	*r.ev = ev
	r.st.files.restore(files)
	r.st.links.restore(links)
	r.steps, r.out, r.start = 0, false, time.Now() // what came before must not use up what is left for this
	r.scripts = nil
}

// How a program takes lines.
const (
	asShell = iota
	asCode
	asConsole
	asEditor // a console some of whose keys are commands: vim, less
)

func langOrConsole(program string) int {
	c := consoleOf(program)
	switch {
	case langOfProgram(program) != "":
		return asCode
	case c == nil:
		return asShell
	case c.bars && !c.ed || !c.stdin:
		return asEditor
	}
	return asConsole
}

// inLanguage reads what was typed into a program as that program does.
func (r *run) inLanguage(program, text string) {
	kind := langOrConsole(program)
	if kind == asShell || !r.spend() {
		return
	}
	at := len(r.ev.Commands)
	r.simple([]arg{{s: program}}, nil, frame{unit: &unit{src: program}, name: "bash"}, val{})
	if at >= len(r.ev.Commands) {
		return
	}
	g := frame{unit: &unit{src: text}, name: "bash"}.wrapped(program)
	if kind == asCode {
		r.script("", langOfProgram(program), text, g)
		return
	}
	h := consoleRun{r: r, c: consoleOf(program), at: at, f: g}
	for _, line := range strings.Split(text, "\n") {
		if kind == asEditor { // keys of other modes come first
			i := strings.IndexAny(line, ":!")
			if i < 0 {
				continue
			}
			line = line[i:]
		}
		h.line(strings.TrimSpace(line))
	}
}

// program names what reads the lines that are typed: the last program that the command starts.
func (t *typing) program() string {
	tree, err := syntax.NewParser().Parse(strings.NewReader(t.command), "")
	if err != nil || len(t.command) > maxValue {
		return ""
	}
	program := ""
	syntax.Walk(tree, func(node syntax.Node) bool {
		if c, ok := node.(*syntax.CallExpr); ok {
			if name := programOf(c); name != "" {
				program = name
			}
		}
		return true
	})
	return program
}

// programOf names the program of a simple command, behind programs that only start another.
func programOf(c *syntax.CallExpr) string {
	for _, w := range c.Args {
		name := path.Base(w.Lit())
		switch name {
		case "exec", "env", "command", "sudo", "nohup", "stdbuf", "nice", "time", "rlwrap", "timeout", "setsid", "script", "unbuffer":
			continue
		}
		if w.Lit() == "" || strings.HasPrefix(name, "-") || strings.Contains(w.Lit(), "=") || strings.Trim(name, "0123456789smh.") == "" {
			continue
		}
		return name
	}
	return ""
}
