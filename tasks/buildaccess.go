package tasks

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"proctor/sandbox"
)

// BuildAccess is what build and setup lines get of the host's network settings. Many hosts sit
// behind a proxy that inspects TLS: without its certificates no build could fetch anything. All of it
// is lent by environment and by a file for the time of the build, and none stays in the image.
type BuildAccess struct {
	Env map[string]string // proxy and index settings, as programs read them
	CA  []byte            // certificates, PEM
}

// accessVars are the settings that are lent: proxies, and where package managers fetch from.
var accessVars = []string{"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "UV_INDEX_URL", "UV_DEFAULT_INDEX",
	"npm_config_registry", "NPM_CONFIG_REGISTRY", "GOPROXY", "GONOSUMDB", "GOSUMDB", "CARGO_REGISTRIES_CRATES_IO_INDEX"}

// caVars are the variables that name a file of certificates, by which program reads them: OpenSSL and
// Python, requests and pip, curl, git, Node, and the AWS tools.
var caVars = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE", "UV_SSL_CERT_FILE"}

// maxCA bounds a file of certificates, in bytes; Debian's has 220 KB.
const maxCA = 8 << 20

// HostAccess gives the settings of this host: the environment (lookup is os.Getenv), and what pip's
// configuration files say where the environment is silent.
func HostAccess(lookup func(string) string) BuildAccess {
	a := BuildAccess{Env: map[string]string{}}
	for _, name := range accessVars {
		if v := lookup(name); v != "" {
			a.Env[name] = v
		}
	}
	pip := pipSettings(lookup)
	for name, key := range map[string]string{"PIP_INDEX_URL": "index-url", "PIP_EXTRA_INDEX_URL": "extra-index-url", "PIP_TRUSTED_HOST": "trusted-host",
		"PIP_DEFAULT_TIMEOUT": "timeout", "PIP_PROXY": "proxy"} {
		if a.Env[name] == "" && pip[key] != "" {
			a.Env[name] = pip[key]
		}
	}
	files := []string{}
	for _, name := range caVars {
		files = append(files, lookup(name))
	}
	for _, file := range append(files, pip["cert"]) {
		info, err := os.Stat(file)
		if file == "" || err != nil || !info.Mode().IsRegular() || info.Size() > maxCA {
			continue
		}
		if data, err := os.ReadFile(file); err == nil {
			a.CA = data
			break
		}
	}
	return a
}

// pipSettings gives the settings of pip's configuration files, the later ones over the earlier: the
// machine's, the user's, and the one that PIP_CONFIG_FILE names. Of their sections, [global] and
// [install] count.
func pipSettings(lookup func(string) string) map[string]string {
	home := lookup("HOME")
	config := lookup("XDG_CONFIG_HOME")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	files := []string{"/etc/xdg/pip/pip.conf", "/etc/pip.conf"}
	if home != "" {
		files = append(files, filepath.Join(home, ".pip/pip.conf"))
	}
	if config != "" {
		files = append(files, filepath.Join(config, "pip/pip.conf"))
	}
	settings := map[string]string{}
	for _, file := range append(files, lookup("PIP_CONFIG_FILE")) {
		if data, err := os.ReadFile(file); err == nil && len(data) < 1<<20 {
			readPip(string(data), settings)
		}
	}
	return settings
}

// readPip reads the ini form: sections, key = value or key: value, values that go on indented.
func readPip(text string, into map[string]string) {
	section, key := "", ""
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			section, key = strings.ToLower(strings.Trim(trimmed, "[] ")), ""
		case section != "global" && section != "install":
		case (line[0] == ' ' || line[0] == '\t') && key != "":
			into[key] = strings.TrimSpace(into[key] + " " + trimmed)
		default:
			i := strings.IndexAny(trimmed, "=:")
			if i < 0 {
				continue
			}
			key = strings.ToLower(strings.ReplaceAll(strings.TrimSpace(trimmed[:i]), "_", "-"))
			into[key] = strings.TrimSpace(trimmed[i+1:])
		}
	}
}

// Where the certificates lie while a build runs.
const (
	caDir  = "/tmp/.certs"
	caFile = caDir + "/ca.pem"
)

// lines gives the settings as an environment, in order.
func (a BuildAccess) lines() []string {
	out := []string{"DEBIAN_FRONTEND=noninteractive", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore"}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		out = append(out, name+"="+a.Env[name])
	}
	if len(a.CA) > 0 {
		for _, name := range caVars {
			out = append(out, name+"="+caFile)
		}
		out = append(out, "APT_CONFIG="+caDir+"/apt.conf")
	}
	return out
}

// lend puts the certificates into a sandbox; the function that it gives takes them back.
func (a BuildAccess) lend(ctx context.Context, box sandbox.Session) (func(context.Context) error, error) {
	if len(a.CA) == 0 {
		return func(context.Context) error { return nil }, nil
	}
	if err := shell(ctx, box, "mkdir", "-p", caDir); err != nil {
		return nil, err
	}
	apt := fmt.Sprintf("Acquire::https::CAInfo %q;\n", caFile)
	for name, data := range map[string][]byte{"ca.pem": a.CA, "apt.conf": []byte(apt)} {
		if err := box.Push(ctx, caDir, oneFile(name, data)); err != nil {
			return nil, fmt.Errorf("lending certificates: %w", err)
		}
	}
	return func(ctx context.Context) error { return shell(ctx, box, "rm", "-rf", "--", caDir) }, nil
}

// shell runs a plain command that must succeed.
func shell(ctx context.Context, box sandbox.Session, argv ...string) error {
	res, err := box.Exec(ctx, sandbox.Exec{Argv: argv, Dir: "/", User: "root"})
	if err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	if res.Exit == nil || *res.Exit != 0 {
		return fmt.Errorf("%s failed: %.300s", strings.Join(argv, " "), res.Stderr)
	}
	return nil
}
