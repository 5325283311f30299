package tasks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// maxInstruction bounds an instruction, in bytes.
const maxInstruction = 1 << 20

// instruction replaces the name of a file beside the task by its text.
func (c *checker) instruction() {
	t := c.task
	c.need("instruction", t.Instruction)
	if c.onDisk && t.Instruction != "" && !strings.ContainsAny(t.Instruction, "\n\x00") {
		c.instructionFile()
	}
	switch {
	case c.failed("instruction"):
	case len(t.Instruction) > maxInstruction:
		c.Fail("instruction", "is longer than 1 MiB", "shorten it")
	case strings.TrimSpace(t.Instruction) == "":
		c.Fail("instruction", "is blank", "say what is to be solved")
	case !utf8.ValidString(t.Instruction) || strings.ContainsRune(t.Instruction, 0):
		c.Fail("instruction", "is not UTF-8 text", "save it as UTF-8")
	}
}

// instructionFile reads the file that a one-line instruction names. A single word that ends in a
// text file's suffix always means a file, so that a missing one is not taken for the text.
func (c *checker) instructionFile() {
	name := c.task.Instruction
	meant := !strings.ContainsAny(name, " \t") && (strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".rst"))
	if c.root == nil || !fs.ValidPath(path.Clean(name)) {
		if meant {
			c.Fail("instruction", fmt.Sprintf("%q does not lie beside the task", name), "put it into the task's folder")
		}
		return
	}
	f, err := c.root.Open(path.Clean(name))
	if err != nil {
		if meant {
			c.Fail("instruction", fmt.Sprintf("%q: %s", name, reason(err)), "make the file, or write the text here with `instruction: |`")
		}
		return
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		if meant {
			c.Fail("instruction", fmt.Sprintf("%q is not a file", name), "name a text file")
		}
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxInstruction+1))
	if err != nil {
		c.Fail("instruction", fmt.Sprintf("%q: %s", name, reason(err)), "make it readable")
		return
	}
	c.task.Instruction = string(data)
}

func (c *checker) image() {
	t := c.task
	if t.Build == nil {
		if t.Image == "" {
			c.Fail("image", "is missing", "name an image, or say how to make one with build:")
		} else if strings.ContainsAny(t.Image, " \t\n\x00") || strings.HasPrefix(t.Image, "-") {
			c.Fail("image", fmt.Sprintf("%q is not an image's name", t.Image), "write name:tag or name@sha256:...")
		}
		return
	}
	if t.Image != "" {
		c.Fail("build", "stands beside image", "keep one of them")
	}
	if !c.onDisk && (t.Build.Dockerfile != "" || t.Build.Files != "" || t.Build.Bundle != "") {
		c.Fail("build", "names files, which an inline task does not have", "put the task into a folder and use its id")
		return
	}
	c.build(t.Build)
}

func (c *checker) build(b *Build) {
	others := b.Base != "" || len(b.Apt)+len(b.Pip)+len(b.Run) > 0 || b.Files != "" || b.Bundle != ""
	switch {
	case b.Dockerfile == "" && b.Base == "":
		c.Fail("build.base", "is missing", "name the image to start from, or a dockerfile")
	case b.Dockerfile != "" && others:
		c.Fail("build.dockerfile", "stands beside other build fields", "do it all in the Dockerfile, or all here")
	}
	c.fileBeside("build.dockerfile", b.Dockerfile, false)
	c.fileBeside("build.bundle", b.Bundle, false)
	c.fileBeside("build.files", b.Files, true)
	for i, line := range b.Run {
		c.shellLine(fmt.Sprintf("build.run[%d]", i), line)
	}
	for field, names := range map[string][]string{"build.apt": b.Apt, "build.pip": b.Pip} {
		for i, name := range names {
			if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t\n\x00") {
				c.Fail(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%q is not a package", name), "write one package an item, without options")
			}
		}
	}
}

// fileBeside checks that what a field names lies in the task's folder, links followed inside it
// only, and is a folder or a file as asked.
func (c *checker) fileBeside(field, name string, folder bool) {
	if name == "" {
		return
	}
	clean := path.Clean(name)
	if !fs.ValidPath(clean) || c.root == nil {
		c.Fail(field, fmt.Sprintf("%q does not lie in the task's folder", name), "name a path below the folder, without ..")
		return
	}
	info, err := c.root.Stat(clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Fail(field, fmt.Sprintf("%q is not there", name), "make it, or take the field out")
	case err != nil:
		c.Fail(field, fmt.Sprintf("%q: %s", name, reason(err)), "put it into the task's folder")
	case folder && !info.IsDir():
		c.Fail(field, fmt.Sprintf("%q is not a folder", name), "name a folder")
	case !folder && !info.Mode().IsRegular():
		c.Fail(field, fmt.Sprintf("%q is not a file", name), "name a file")
	}
}

func (c *checker) grader() {
	g := c.task.Grader
	if g == nil {
		return
	}
	c.need("grader.kind", g.Kind)
	if g.Kind != "" {
		c.oneOf("grader.kind", g.Kind, graderKinds)
	}
	if g.Script == "" {
		c.need("grader.command", g.Command)
	} else if g.Command != "" {
		c.Fail("grader.script", "stands beside a command", "keep one of the two")
	}
	c.report(g.Report)
	if g.Reward != "" {
		c.oneOf("grader.reward", g.Reward, rewardWords)
	}
	if g.TimeoutS < 0 || g.TimeoutS > 24*3600 {
		c.Fail("grader.timeout_s", "is out of range", "use 1 to 86400 seconds, or leave it out for 600")
	}
	for _, f := range []struct {
		field, name string
		folder      bool
	}{{"grader.files", g.Files, true}, {"grader.test_patch", g.TestPatch, false}, {"grader.script", g.Script, false}} {
		if f.name != "" && !c.onDisk {
			c.Fail(f.field, "names files, which an inline task does not have", "put the task into a folder and use its id")
		} else {
			c.fileBeside(f.field, f.name, f.folder)
		}
	}
	if g.FilesTo != "" && (!path.IsAbs(g.FilesTo) || path.Clean(g.FilesTo) != g.FilesTo || g.FilesTo == "/") {
		c.Fail("grader.files_to", fmt.Sprintf("%q is not a clean absolute path", g.FilesTo), "write it as /tests")
	}
	for i, f := range g.FromImage {
		field := fmt.Sprintf("grader.from_image[%d]", i)
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			c.Fail(field+".path", fmt.Sprintf("%q is not a clean absolute path", f.Path), "name a file or folder of the image")
		}
		if !fs.ValidPath(f.To) {
			c.Fail(field+".to", fmt.Sprintf("%q is not a path below the workdir", f.To), "write it relative to the workdir, without .., or as \".\"")
		}
	}
	for i, k := range g.Keep {
		c.absolutePath(fmt.Sprintf("grader.keep[%d]", i), k)
	}
	c.expected(g)
}

func (c *checker) report(report string) {
	c.need("grader.report", report)
	if report == "" || logParser.MatchString(report) {
		return
	}
	c.oneOf("grader.report", report, reportKinds)
	if report == "log:<parser>" {
		c.Fail("grader.report", "names no parser", "write log: and the parser's name")
	}
}

// expected checks the test ids: some where the report has ids, none twice.
func (c *checker) expected(g *Grader) {
	if g.Report != "" && g.Report != "exit" && g.Report != "reward-file" && len(g.FailToPass) == 0 {
		c.Fail("grader.fail_to_pass", "is empty: nothing would show that the task is solved", "name the tests that the solution makes pass")
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		name string
		ids  []string
	}{{"fail_to_pass", g.FailToPass}, {"pass_to_pass", g.PassToPass}} {
		for i, id := range list.ids {
			if id == "" || seen[id] {
				c.Fail(fmt.Sprintf("grader.%s[%d]", list.name, i), fmt.Sprintf("%q stands twice or is empty", id), "name each test once")
			}
			seen[id] = true
		}
	}
}

func (c *checker) solution() {
	if c.task.Solution == "" {
		return
	}
	if !c.onDisk {
		c.Fail("solution", "names a file, which an inline task does not have", "put the task into a folder and use its id")
		return
	}
	c.fileBeside("solution", c.task.Solution, false)
}
