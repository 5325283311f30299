package normalize

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
)

// redirects reads the redirections of a statement: its literal stdin and the files that it writes.
// A file's content is filled in once the output is known (see written).
func (r *run) redirects(s *syntax.Stmt, f frame, in val) (val, []rules.File, []arg) {
	var outs []rules.File
	var reads []arg
	for _, rd := range s.Redirs {
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			in = r.heredoc(rd, f)
		case syntax.WordHdoc:
			w := r.word(rd.Word, f)
			in = val{w.s + "\n", !w.opaque}
		case syntax.RdrIn, syntax.RdrInOut:
			word := r.target(rd, f)
			reads = append(reads, word)
			target := r.abs(word.s)
			in = r.contentOf(target)
			if rd.Op == syntax.RdrInOut && !strings.HasPrefix(target, "/dev/") {
				outs = append(outs, rules.File{Op: "append", Path: target})
			}
		case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll, syntax.AppOut, syntax.AppAll, syntax.DplOut:
			if rd.Op == syntax.DplOut && fdWord(rd.Word) {
				continue
			}
			word := r.target(rd, f)
			target := r.abs(word.s)
			if quietDevice(target) {
				continue
			}
			if devTCP(target) != "" {
				reads = append(reads, word)
				continue
			}
			op := "create"
			if rd.Op == syntax.AppOut || rd.Op == syntax.AppAll {
				op = "append"
			}
			fl := rules.File{Op: op, Path: target}
			if rd.N != nil && rd.N.Value == "2" {
				fl.Op = "append" // an error log: what it holds is not the agent's text
			}
			outs = append(outs, fl)
		}
	}
	return in, outs, reads
}

// fdWord tells whether the word of >& is a descriptor: 2>&1, 2>&-.
func fdWord(w *syntax.Word) bool {
	lit := w.Lit()
	return lit == "-" || lit != "" && strings.Trim(lit, "0123456789-") == ""
}

func quietDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	return strings.HasPrefix(p, "/dev/fd/")
}

func (r *run) target(rd *syntax.Redirect, f frame) arg {
	fields := r.fields([]*syntax.Word{rd.Word}, f)
	if len(fields) == 0 {
		return arg{}
	}
	return fields[0]
}

func (r *run) heredoc(rd *syntax.Redirect, f frame) val {
	if rd.Hdoc == nil {
		return known("")
	}
	w := r.word(rd.Hdoc, f)
	s := w.s
	if quotedDelimiter(rd.Word) {
		s, w.opaque = heredocText(rd.Hdoc), false
	}
	if rd.Op == syntax.DashHdoc {
		lines := strings.Split(s, "\n")
		for i := range lines {
			lines[i] = strings.TrimLeft(lines[i], "\t")
		}
		s = strings.Join(lines, "\n")
	}
	// A heredoc with an unknown expansion is still worth reading: the expansion stands as written.
	return known(s)
}

func quotedDelimiter(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '\\') >= 0 {
				return true
			}
		}
	}
	return false
}

func heredocText(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			b.WriteString(l.Value)
		}
	}
	return clip(b.String(), maxValue)
}

// written records a file that a redirection wrote, with its content where that is known.
func (r *run) written(fl *rules.File, out val) {
	if out.known && !(fl.Op == "append" && out.s == "") {
		fl.Added = out.s
		if fl.Op == "create" {
			fl.Content = out.s
		}
	}
	r.edit(*fl, out.known)
}

// redirectOnly records a statement that is nothing but redirections: "> file", "< file".
func (r *run) redirectOnly(s *syntax.Stmt, f frame) {
	if s == nil || len(s.Redirs) == 0 {
		return
	}
	cmd := rules.Command{Line: clip(f.raw(s), maxValue), Via: f.via}
	r.redirectFacts(&cmd, f)
	for _, o := range f.files {
		cmd.Writes = appendNew(cmd.Writes, o.Path)
		if r.hidden(o.Path) {
			cmd.Hidden = appendNew(cmd.Hidden, o.Path)
		}
	}
	r.addCommand(cmd)
}

// redirectFacts adds the paths and hosts that redirections read to their command.
func (r *run) redirectFacts(cmd *rules.Command, f frame) {
	for _, a := range f.reads {
		if host := devTCP(a.s); host != "" {
			r.addHost(&cmd.Net, host)
			continue
		}
		r.addPath(cmd, a)
	}
	if len(f.reads) > 0 {
		r.judgeNet(&cmd.Net)
	}
}

// devTCP gives the host of bash's /dev/tcp/HOST/PORT and gawk's /inet/tcp/0/HOST/PORT.
func devTCP(p string) string {
	for _, prefix := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(p, prefix); ok {
			host, _, _ := strings.Cut(rest, "/")
			return host
		}
	}
	return ""
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	if len(list) >= maxWords || s == "" {
		return list
	}
	return append(list, s)
}
