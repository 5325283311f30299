package normalize

import "path"

// Where a script stands: its own path, its folder, the folder that it runs in, the home folder, and the
// folders above them.

// place folds the names by which a script calls its own file and folder.
func (f *folder) place(name string) (constant, bool) {
	file := f.file
	if file == "" {
		file = f.cwd + "/<script>"
	}
	switch name {
	case "__file__", "__filename", "__FILE__":
		return constant{s: file, path: f.lang == "python"}, true
	case "__dirname", "__DIR__", "__dir__":
		return text(path.Dir(file)), true
	}
	return constant{}, false
}

// standing folds the calls that give such a folder: full is the call's name, open its bracket.
func (f *folder) standing(full string, open int) (constant, int, bool) {
	dir := ""
	switch full {
	case "Path.cwd", "pathlib.Path.cwd", "process.cwd", "Dir.pwd", "Dir.getwd", "getcwd":
		dir = f.cwd
	case "Path.home", "pathlib.Path.home", "os.homedir", "homedir", "Dir.home":
		dir = f.home
	case "os.path.dirname", "path.dirname", "dirname", "File.dirname", "filepath.Dir", "os.path.realpath", "File.expand_path", "os.path.normpath", "path.normalize":
		args, k, ok := f.items(open, ")")
		if !ok || len(args.list) == 0 || args.list[0].num || args.list[0].lists {
			return constant{}, open, false
		}
		p := args.list[0].s
		if full == "File.expand_path" && len(args.list) > 1 {
			p = absFrom(args.list[1].s, p)
		}
		p = absFrom(f.cwd, p)
		switch full {
		case "os.path.realpath", "File.expand_path", "os.path.normpath", "path.normalize":
			return text(p), k, true
		}
		return text(path.Dir(p)), k, true
	case "path.resolve":
		args, k, ok := f.items(open, ")")
		if !ok {
			return constant{}, open, false
		}
		p := f.cwd
		for _, a := range args.list {
			p = absFrom(p, a.str())
		}
		return text(p), k, true
	}
	if dir == "" || !f.is(open+1, ")") {
		return constant{}, open, false
	}
	return constant{s: dir, path: f.lang == "python"}, open + 2, true
}

// parents folds p.parent and the list p.parents.
func (f *folder) parents(c constant, method string) constant {
	p := path.Dir(absFrom(f.cwd, c.s))
	if method == "parent" {
		return constant{s: p, path: true}
	}
	out := constant{lists: true}
	for range 12 {
		out.list = append(out.list, constant{s: p, path: true})
		p = path.Dir(p)
	}
	return out
}
