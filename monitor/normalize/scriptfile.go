package normalize

import (
	"strings"

	"proctor/rules"
)

// fileCall tells whether a call of this name changes files.
func fileCall(name string) bool {
	switch name {
	case "open", "write_text", "write_bytes", "writeFileSync", "writeFile", "appendFileSync", "appendFile", "createWriteStream", "WriteFile", "Create", "OpenFile",
		"file_put_contents", "to_csv", "to_json", "to_parquet", "to_pickle", "savetxt", "save", "savez", "dump", "copy", "copyfile", "copy2", "copytree", "move", "rename",
		"replace", "symlink", "symlinkSync", "link", "remove", "unlink", "rmtree", "unlinkSync", "rmSync", "Remove", "RemoveAll", "chmod", "write", "copyFileSync", "renameSync", "Symlink", "Rename", "symlink_to", "touch":
		return true
	}
	return false
}

// fileCall records the change that one call makes.
func (a *analysis) fileCall(name string, at int, args []callArg) {
	arg := func(i int) string {
		if i >= 0 && i < len(args) && args[i].known && !args[i].c.lists && !args[i].c.num {
			return args[i].c.s
		}
		return ""
	}
	switch name {
	case "open", "OpenFile":
		mode := arg(1)
		if arg(0) != "" && (strings.ContainsAny(mode, "wax+>") && len(mode) <= 4 || name == "OpenFile") {
			a.wrote(arg(0), strings.Contains(mode, "a"), a.handed(at))
		}
	case "write_text", "write_bytes", "touch", "symlink_to":
		if p := a.receiver(at); p != "" {
			a.wrote(p, false, arg(0))
			if name == "symlink_to" && !a.written {
				a.r.link(a.r.abs(p), arg(0))
			}
		}
	case "writeFileSync", "writeFile", "createWriteStream", "WriteFile", "file_put_contents", "Create", "copyFileSync":
		if name == "copyFileSync" {
			a.wrote(arg(1), false, "")
			break
		}
		a.wrote(arg(0), false, arg(1))
	case "appendFileSync", "appendFile":
		a.wrote(arg(0), true, arg(1))
	case "to_csv", "to_json", "to_parquet", "to_pickle", "savetxt", "savez":
		a.wrote(arg(0), false, "")
	case "save", "dump":
		if p := arg(1); looksLikePath(p) && strings.ContainsAny(p, "/.") {
			a.wrote(p, false, "")
		} else if p := arg(0); name == "save" && looksLikePath(p) && strings.ContainsAny(p, "/.") {
			a.wrote(p, false, "")
		}
	case "write":
		// Ruby's File.write(path, text).
		if a.s.Lang == "ruby" && len(args) == 2 {
			a.wrote(arg(0), false, arg(1))
		}
	case "copy", "copyfile", "copy2", "copytree", "move", "rename", "renameSync", "Rename":
		if name == "copy" && len(args) < 2 {
			break
		}
		a.wrote(arg(1), false, "")
		if strings.HasPrefix(name, "move") || strings.HasPrefix(strings.ToLower(name), "rename") {
			a.gone(arg(0))
		}
	case "symlink", "symlinkSync", "link", "Symlink":
		a.wrote(arg(1), false, "")
		if !a.written && arg(1) != "" {
			a.r.link(a.r.abs(arg(1)), arg(0))
		}
	case "remove", "unlink", "rmtree", "unlinkSync", "rmSync", "Remove", "RemoveAll":
		p := arg(0)
		if p == "" {
			p = a.receiver(at)
		}
		a.gone(p)
	}
}

// receiver gives the constant that a method is called on: Path("x").write_text(...).
func (a *analysis) receiver(at int) string {
	if !a.f.is(at-1, ".") {
		return ""
	}
	for _, l := range a.lits {
		if l.next == at-1 {
			return l.value
		}
	}
	return ""
}

// handed gives the text that is written through a handle: the constants of the next write calls.
func (a *analysis) handed(at int) string {
	var out []string
	for i := at; i < len(a.f.toks) && i < at+400; i++ {
		t := a.f.toks[i]
		if t.kind == tokName && (t.text == "write" || t.text == "writelines" || t.text == "print" || t.text == "puts") && a.f.is(i+1, "(") {
			if c, _, ok := a.f.expr(i + 2); ok && !c.lists && !c.num {
				out = append(out, c.s)
			}
		}
	}
	return strings.Join(out, "")
}

// wrote records a written file. Where what is written is computed, the constants of the script that
// are neither paths nor short stand for it: a patching script holds the new text as a literal.
func (a *analysis) wrote(p string, appends bool, content string) {
	if p == "" || len(p) > 4096 || strings.ContainsAny(p, "\n\x00") {
		return
	}
	abs := a.r.abs(p)
	a.s.Writes = appendNew(a.s.Writes, abs)
	if a.written {
		return
	}
	fl := rules.File{Op: "edit", Path: abs}
	switch {
	case content != "" && appends:
		fl.Op, fl.Added = "append", content
	case content != "":
		fl.Op, fl.Added, fl.Content = "create", content, content
	case appends:
		fl.Op, fl.Added = "append", a.textLiterals()
	default:
		fl.Added, fl.Removed = a.textLiterals(), a.replaced()
	}
	a.r.edit(fl, content != "")
}

func (a *analysis) gone(p string) {
	if p == "" || a.written {
		return
	}
	abs := a.r.abs(p)
	a.s.Writes = appendNew(a.s.Writes, abs)
	a.r.edit(rules.File{Op: "delete", Path: abs}, false)
}

// textLiterals gives the script's constants that may be text it writes, less what it looks for.
func (a *analysis) textLiterals() string {
	var out []string
	for _, l := range a.lits {
		if len(l.value) < 3 || !strings.ContainsAny(l.value, " \n=(") || a.firstOfReplace(l) {
			continue
		}
		out = append(out, l.value)
	}
	return clip(strings.Join(out, "\n"), maxContent)
}

// replaced gives the constants that the script looks for and replaces.
func (a *analysis) replaced() string {
	var out []string
	for _, l := range a.lits {
		if a.firstOfReplace(l) {
			out = append(out, l.value)
		}
	}
	return clip(strings.Join(out, "\n"), maxContent)
}

func (a *analysis) firstOfReplace(l literal) bool {
	if !a.f.is(l.tok-1, "(") || !a.f.is(l.next, ",") {
		return false
	}
	switch a.f.at(l.tok - 2).text {
	case "replace", "sub", "subn", "replaceAll", "gsub":
		return true
	}
	return false
}
