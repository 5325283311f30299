package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// buildTail is how much of a failed build's output an error carries, in bytes.
const buildTail = 2000

// errStopped is what a writer to the daemon gets when it reads no further.
var errStopped = errors.New("the daemon stopped reading")

// BuildImage builds a Dockerfile with the daemon's own builder, which is there from Engine 20.10 on
// without any addition, and keeps the image under its Ref.
//
// Nothing is taken from the builder's cache: what an earlier build of the same lines saw may have been
// another network or another proxy. Proxies are build arguments that the builder knows and keeps out of
// the history; other settings and certificates are lent by lines put into the Dockerfile (see lend),
// and taken out of the result again (see strip).
func (e *Engine) BuildImage(ctx context.Context, b sandbox.ImageBuild) (sandbox.Image, error) {
	temporary := "proctor/building:" + confine.RandomHex(8)
	l := newLoan(b.Env, b.CA)
	read, write := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := l.context(write, b.Context, b.Dockerfile)
		sent <- err
		write.CloseWithError(err)
	}()
	options := build.ImageBuildOptions{
		Version: build.BuilderV1, Tags: []string{temporary}, Dockerfile: b.Dockerfile, BuildArgs: l.args(),
		NoCache: true, Remove: true, ForceRemove: true,
	}
	if b.NoNetwork {
		options.NetworkMode = "none"
	}
	res, err := e.cli.ImageBuild(ctx, read, options)
	if err == nil {
		err = e.follow(ctx, res.Body, b.Progress, l)
	} else {
		err = buildFault("", err.Error(), e.wrap("build an image", err))
	}
	_ = read.CloseWithError(errStopped)
	if fault := <-sent; fault != nil && !errors.Is(fault, errStopped) {
		err = fault // the cause; what the client makes of it looks like a daemon that is gone
	}
	defer e.forget(ctx, temporary)
	if err != nil {
		return sandbox.Image{}, err
	}
	if l.empty() {
		if err := e.cli.ImageTag(ctx, temporary, b.Ref); err != nil {
			return sandbox.Image{}, e.wrap("name an image", err)
		}
		return e.localImage(ctx, b.Ref)
	}
	if err := e.strip(ctx, temporary, b.Ref, l); err != nil {
		return sandbox.Image{}, e.wrap("take lent settings out of an image", err)
	}
	return e.localImage(ctx, b.Ref)
}

// forget removes an image and the steps below it that nothing else is made of.
func (e *Engine) forget(ctx context.Context, ref string) {
	ctx, cancel := detached(ctx, cleanupLimit)
	defer cancel()
	if _, err := e.cli.ImageRemove(ctx, ref, image.RemoveOptions{Force: true, PruneChildren: true}); err != nil && !strings.Contains(err.Error(), "No such image") {
		e.log.Warn("a build's own image could not be removed", "image", ref, "err", err)
	}
}

var (
	stepLine  = regexp.MustCompile(`^Step ([0-9]+/[0-9]+) : (.*)`)
	imageLine = regexp.MustCompile(`^ ---> ([0-9a-f]{12})\s*$`)
)

// follow reads the builder's stream to its end.
func (e *Engine) follow(ctx context.Context, body io.ReadCloser, progress func(string), l *loan) error {
	defer body.Close()
	step, last := "", ""
	var tail []byte
	lines := json.NewDecoder(bufio.NewReader(body))
	for {
		var line struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return e.wrap("follow a build", errors.Join(err, ctx.Err()))
		case line.Error != "":
			if last != "" {
				e.forget(ctx, last)
			}
			return buildFault(step, l.redact(line.Error), errors.New(l.redact(strings.TrimSpace(string(tail)))))
		}
		if m := stepLine.FindStringSubmatch(line.Stream); m != nil {
			tail = tail[:0]
			if step = "step " + m[1] + ": " + firstLine(m[2]); progress != nil && !l.owns(m[2]) {
				progress(step)
			}
			continue
		}
		if m := imageLine.FindStringSubmatch(strings.TrimRight(line.Stream, "\n")); m != nil {
			last = m[1]
			continue
		}
		tail = append(tail, line.Stream...)
		tail = tail[max(0, len(tail)-buildTail):]
	}
}

// buildFault names the step that failed, what the builder said, and the end of what the step printed.
func buildFault(step, said string, output error) error {
	if errors.Is(output, sandbox.ErrUnavailable) || errors.Is(output, context.Canceled) || errors.Is(output, context.DeadlineExceeded) {
		return output
	}
	if step == "" {
		return fmt.Errorf("%w: %s", sandbox.ErrBuild, said)
	}
	return fmt.Errorf("%w: %s: %s\n%s", sandbox.ErrBuild, step, said, output)
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(first) > 200 {
		first = strings.ToValidUTF8(first[:200], "") + "..."
	}
	return first
}

// loan is what a build is lent: settings by build argument, and certificates by a file.
type loan struct {
	env    map[string]string
	ca     []byte
	folder string // in the context, of a name that no Dockerfile knows
}

func newLoan(env map[string]string, ca []byte) *loan {
	return &loan{env: env, ca: ca, folder: ".lent-" + confine.RandomHex(8)}
}

// empty reports whether the image needs nothing taken out: the builder itself keeps proxies out.
func (l *loan) empty() bool { return len(l.ca) == 0 && len(l.names()) == 0 }

// known are the build arguments that the builder gives to every step and keeps out of the history.
var known = map[string]bool{"http_proxy": true, "https_proxy": true, "ftp_proxy": true, "no_proxy": true, "all_proxy": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "FTP_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true}

// Where certificates lie during a build, and the variables that name them, by which program reads
// them: OpenSSL and Python, requests and pip, curl, git, Node, uv, cargo, apt.
const lentFolder = "/tmp/.certs"

var lentCA = []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "UV_SSL_CERT_FILE", "CARGO_HTTP_CAINFO"}

// names are the settings that a Dockerfile must declare to be given, sorted.
func (l *loan) names() []string {
	var names []string
	for _, name := range sortedKeys(l.env) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

func (l *loan) args() map[string]*string {
	args := map[string]*string{}
	for name, value := range l.env {
		args[name] = &value
	}
	if len(l.ca) > 0 {
		file, apt := lentFolder+"/ca.pem", lentFolder+"/apt.conf"
		for _, name := range lentCA {
			args[name] = &file
		}
		args["APT_CONFIG"] = &apt
	}
	return args
}

// lines are put after every FROM.
func (l *loan) lines() []string {
	var lines []string
	names := l.names()
	if len(l.ca) > 0 {
		lines = append(lines, "COPY "+l.folder+"/ "+lentFolder+"/")
		names = append(append(names, lentCA...), "APT_CONFIG")
	}
	for _, name := range names {
		lines = append(lines, "ARG "+name)
	}
	return lines
}

// owns reports whether a step is one of lines.
func (l *loan) owns(step string) bool {
	for _, line := range l.lines() {
		if strings.TrimSpace(step) == line {
			return true
		}
	}
	return false
}

// redact takes values that were lent out of a message: a proxy's address may hold a password.
func (l *loan) redact(text string) string {
	for name, value := range l.env {
		if len(value) >= 8 {
			text = strings.ReplaceAll(text, value, "$"+name)
		}
	}
	return text
}

var (
	fromLine   = regexp.MustCompile(`(?i)^\s*FROM\s`)
	escapeLine = regexp.MustCompile("(?i)^\\s*#\\s*escape\\s*=\\s*`")
)

// lend puts lines after every FROM of a Dockerfile.
func (l *loan) lend(dockerfile []byte) []byte {
	escape := `\`
	if escapeLine.Match(dockerfile) {
		escape = "`"
	}
	var out bytes.Buffer
	continued, from := false, false
	for _, line := range bytes.SplitAfter(dockerfile, []byte("\n")) {
		out.Write(line)
		text := strings.TrimRight(string(line), " \t\r\n")
		if continued && (text == "" || strings.HasPrefix(strings.TrimSpace(text), "#")) {
			continue // neither ends an instruction that goes on
		}
		if !continued {
			from = fromLine.MatchString(text)
		}
		continued = strings.HasSuffix(text, escape) && !strings.HasPrefix(strings.TrimSpace(text), "#")
		if from && !continued {
			if !bytes.HasSuffix(line, []byte("\n")) {
				out.WriteByte('\n')
			}
			out.WriteString(strings.Join(l.lines(), "\n") + "\n")
			from = false
		}
	}
	return out.Bytes()
}
