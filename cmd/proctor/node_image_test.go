package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// nodeImage is the base image with this machine's node and npm in it, 120 MB more. The base image itself,
// which every sandbox of the tests is made from, has neither.
const nodeImage = "proctor-test/node:dev"

// needNode gives nodeImage. Where the machine has no npm that is whole in its own folder, as Node's own
// packages have it, or its node does not run in the base image, the test ends with a loud skip.
func needNode(t *testing.T) string {
	t.Helper()
	needDocker(t)
	if err := makeNode(); err != nil {
		t.Skip("NOT TESTED in a sandbox, needs npm on this machine: " + err.Error())
	}
	return nodeImage
}

var makeNode = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "proctor-test-node")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := gatherNode(dir); err != nil {
		return err
	}
	if out, err := exec.Command("docker", "build", "-q", "-t", nodeImage, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("docker build: %w: %s", err, out)
	}
	if out, err := exec.Command("docker", "run", "--rm", "--network", "none", "--label", "proctor-test", nodeImage, "npm", "--version").CombinedOutput(); err != nil {
		return fmt.Errorf("npm does not run in %s: %w: %s", baseImage, err, out)
	}
	return nil
})

// gatherNode fills a folder that an image can be built from: node, the libraries that it needs beside the
// C library, and the packages that npm is made of, at their own paths.
func gatherNode(dir string) error {
	node, err := realProgram("node")
	if err != nil {
		return err
	}
	npm, err := realProgram("npm")
	if err != nil {
		return err
	}
	packages := filepath.Dir(filepath.Dir(npm)) // of .../npm/bin/npm-cli.js
	if strings.HasPrefix(packages, "/usr/share/nodejs/") {
		return errors.New("npm is Debian's, which is hundreds of packages and 250 MB: an image of it takes a minute")
	}
	libraries, err := librariesOf(node)
	if err != nil {
		return err
	}
	for _, name := range []string{"bin", "lib", "packages"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{
		"bin/node.sh": "#!/bin/sh\nLD_LIBRARY_PATH=/opt/node/lib exec /opt/node/bin/node \"$@\"\n",
		"bin/npm.sh":  "#!/bin/sh\nexec node " + npm + " \"$@\"\n",
		"Dockerfile": "FROM " + baseImage + "\nCOPY bin /opt/node/bin\nCOPY lib /opt/node/lib\nCOPY packages " + packages +
			"\nRUN mv /opt/node/bin/node.sh /usr/local/bin/node && mv /opt/node/bin/npm.sh /usr/local/bin/npm\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	copies := [][]string{{node, filepath.Join(dir, "bin", "node")}, {packages + "/.", filepath.Join(dir, "packages")}}
	for _, library := range libraries {
		copies = append(copies, []string{library, filepath.Join(dir, "lib")})
	}
	for _, c := range copies {
		if out, err := exec.Command("cp", "-rL", c[0], c[1]).CombinedOutput(); err != nil {
			return fmt.Errorf("cp %s: %w: %.300s", c[0], err, out)
		}
	}
	return nil
}

// realProgram gives where a program lies, links followed.
func realProgram(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(found)
}

// cLibrary are the libraries that the base image has to have by itself: they go with its loader.
var cLibrary = regexp.MustCompile(`^(libc|libm|libdl|librt|libpthread|libresolv)\.so\.`)

// librariesOf gives the libraries of a program, as ldd lists them, but for the C library's.
func librariesOf(program string) ([]string, error) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, err)
	}
	var all []string
	for _, m := range regexp.MustCompile(`=> (/\S+)`).FindAllStringSubmatch(string(out), -1) {
		if !cLibrary.MatchString(filepath.Base(m[1])) {
			all = append(all, m[1])
		}
	}
	return all, nil
}
