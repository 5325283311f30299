// Package config holds the server's settings and where they come from: defaults, then a YAML file,
// then PROCTOR_* variables, then flags, each over the one before.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"proctor/judge"
	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/npm"
	"proctor/sandbox/egress/index/pypi"
)

// Config is every setting of a server. The yaml tag is the key in the file; the env tag the
// variable.
type Config struct {
	Listen string `yaml:"listen" json:"listen" env:"PROCTOR_LISTEN"`
	// CompatListen serves OpenEnv and NeMo-Gym without a key, for clients that cannot send one; "" is not at all.
	CompatListen string `yaml:"compat_listen" json:"compat_listen" env:"PROCTOR_COMPAT_LISTEN"`

	Data       string   `yaml:"data" json:"data" env:"PROCTOR_DATA"` // folder of the store, keys and prepared images' state
	Engine     string   `yaml:"engine" json:"engine" env:"PROCTOR_ENGINE"`
	Tasks      []string `yaml:"tasks" json:"tasks" env:"PROCTOR_TASKS"`                // task files and folders; in the variable joined by ":"
	Packs      []string `yaml:"packs" json:"packs" env:"PROCTOR_PACKS"`                // beside the embedded core pack
	Classifier string   `yaml:"classifier" json:"classifier" env:"PROCTOR_CLASSIFIER"` // a model's file; "" is the built-in one
	Boxd       string   `yaml:"boxd" json:"boxd" env:"PROCTOR_BOXD"`                   // the box agent's binary; "" is boxd beside this one
	ReadyFile  string   `yaml:"ready_file" json:"ready_file" env:"PROCTOR_READY_FILE"`
	OnExit     string   `yaml:"on_exit" json:"on_exit" env:"PROCTOR_ON_EXIT"` // keep, remove: sandboxes at SIGTERM
	LogLevel   string   `yaml:"log_level" json:"log_level" env:"PROCTOR_LOG_LEVEL"`
	LogFormat  string   `yaml:"log_format" json:"log_format" env:"PROCTOR_LOG_FORMAT"` // text, json
	TrainerKey string   `yaml:"-" json:"-" env:"PROCTOR_TRAINER_KEY"`                  // never from a file

	MaxRollouts int           `yaml:"max_rollouts" json:"max_rollouts" env:"PROCTOR_MAX_ROLLOUTS"` // open at once; 0 is the default, 256
	PoolMax     int           `yaml:"pool_max" json:"pool_max" env:"PROCTOR_POOL_MAX"`             // most sandboxes kept ready before they are asked for; 0 for none
	Lease       time.Duration `yaml:"lease" json:"lease" env:"PROCTOR_LEASE"`

	Preset  string `yaml:"preset" json:"preset" env:"PROCTOR_PRESET"`    // balanced, strict, observe
	Answers string `yaml:"answers" json:"answers" env:"PROCTOR_ANSWERS"` // of blocked calls: decoy, explicit
	Witness string `yaml:"witness" json:"witness" env:"PROCTOR_WITNESS"` // of protected files: observe, deny, off
	Judge   Judge  `yaml:"judge" json:"judge"`

	// PackageIndex is the index that tasks with a package_index are shown a part of, as pip's --index-url takes
	// it; "" is none.
	PackageIndex string `yaml:"package_index" json:"package_index" env:"PROCTOR_PACKAGE_INDEX"`
	// NPMIndex is the npm registry that they are shown a part of, as npm's registry setting takes it; "" is none.
	NPMIndex string `yaml:"npm_index" json:"npm_index" env:"PROCTOR_NPM_INDEX"`
	Egress   Egress `yaml:"egress" json:"egress"`
	OCI      OCI    `yaml:"oci" json:"oci"`
}

// OCI are the settings of the oci engine.
type OCI struct {
	Runtime string `yaml:"runtime" json:"runtime" env:"PROCTOR_OCI_RUNTIME"`    // a program's name or path; "" is the first of runc, crun, runsc
	Store   string `yaml:"store" json:"store" env:"PROCTOR_OCI_STORE"`          // folder of unpacked images and sandboxes; "" is /var/lib/initd
	UserNS  int    `yaml:"user_ns" json:"user_ns" env:"PROCTOR_OCI_USER_NS"`    // first host id of a sandbox's users; 0 for no user namespace
	HidePID bool   `yaml:"hide_pid" json:"hide_pid" env:"PROCTOR_OCI_HIDE_PID"` // hide other users' processes from commands in /proc
}

// Egress bounds what tasks' allowlists reach.
type Egress struct {
	// Private are ranges that may be reached though they are not public: one's own mirrors. Comma-separated.
	Private string `yaml:"private" json:"private" env:"PROCTOR_EGRESS_PRIVATE"`
	MaxMB   int    `yaml:"max_mb" json:"max_mb" env:"PROCTOR_EGRESS_MAX_MB"` // both ways, of one rollout; 0 is the default, 4096
}

// Judge is how cases are judged. Without a URL the built-in heuristic decides.
type Judge struct {
	URL         string        `yaml:"url" json:"url" env:"PROCTOR_JUDGE_URL"` // an OpenAI-compatible base URL
	Model       string        `yaml:"model" json:"model" env:"PROCTOR_JUDGE_MODEL"`
	APIKey      string        `yaml:"-" json:"-" env:"PROCTOR_JUDGE_API_KEY"`
	Timeout     time.Duration `yaml:"timeout" json:"timeout" env:"PROCTOR_JUDGE_TIMEOUT"`
	Concurrency int           `yaml:"concurrency" json:"concurrency" env:"PROCTOR_JUDGE_CONCURRENCY"`
	RPS         float64       `yaml:"rps" json:"rps" env:"PROCTOR_JUDGE_RPS"`                   // requests a second; 0 for no limit
	Votes       int           `yaml:"votes" json:"votes" env:"PROCTOR_JUDGE_VOTES"`             // questions in all where the first answer is unsure
	PriceIn     float64       `yaml:"price_in" json:"price_in" env:"PROCTOR_JUDGE_PRICE_IN"`    // of a million tokens of question
	PriceOut    float64       `yaml:"price_out" json:"price_out" env:"PROCTOR_JUDGE_PRICE_OUT"` // of a million tokens of answer
	OnUnsure    string        `yaml:"on_unsure" json:"on_unsure" env:"PROCTOR_JUDGE_ON_UNSURE"` // execute, decoy, hold
	OnFailure   string        `yaml:"on_failure" json:"on_failure" env:"PROCTOR_JUDGE_ON_FAILURE"`
	OnOutage    string        `yaml:"on_outage" json:"on_outage" env:"PROCTOR_JUDGE_ON_OUTAGE"`
}

// Default gives the settings that hold where nothing else is said.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8080", Data: ".proctor", Engine: "docker", OnExit: "keep", LogLevel: "info", LogFormat: "text",
		Lease: 15 * time.Minute, Preset: "balanced", Answers: "decoy", Witness: "observe",
		Judge: Judge{Timeout: 30 * time.Second, Concurrency: 8, Votes: 1, OnUnsure: "execute", OnFailure: "decoy", OnOutage: "decoy"},
	}
}

// Load gives the defaults with the file at path, if path is not "", and the variables laid over.
func Load(path string, getenv func(string) string) (Config, error) {
	c := Default()
	if path != "" {
		body, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("read configuration: %w", err)
		}
		if err := c.parse(path, body); err != nil {
			return c, err
		}
	}
	if err := fromEnv(reflect.ValueOf(&c).Elem(), getenv); err != nil {
		return c, err
	}
	return c, nil
}

// parse lays a YAML document over c. An unknown key is an error with its line.
func (c *Config) parse(path string, body []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(body))
	dec.KnownFields(true)
	err := dec.Decode(c)
	if errors.Is(err, io.EOF) {
		return nil // an empty file
	}
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		return fmt.Errorf("%s: %s", path, plainly(typed.Errors))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var unknownKey = regexp.MustCompile(`field (\S+) not found in type config\.\w+`)

// plainly gives the decoder's errors in words of the file, with what to do.
func plainly(errs []string) string {
	var out []string
	for _, e := range errs {
		out = append(out, unknownKey.ReplaceAllString(e, "unknown key \"$1\"; `proctor config show` prints all keys"))
	}
	return strings.Join(out, "; ")
}

// fromEnv lays the variables named in env tags over the fields of v.
func fromEnv(v reflect.Value, getenv func(string) string) error {
	t := v.Type()
	for i := range t.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Struct {
			if err := fromEnv(f, getenv); err != nil {
				return err
			}
			continue
		}
		name := t.Field(i).Tag.Get("env")
		if text := getenv(name); name != "" && text != "" {
			if err := set(f, text); err != nil {
				return fmt.Errorf("variable %s: %w", name, err)
			}
		}
	}
	return nil
}

// set gives a field the value that text says.
func set(f reflect.Value, text string) error {
	switch f.Interface().(type) {
	case string:
		f.SetString(text)
	case []string:
		f.Set(reflect.ValueOf(strings.Split(text, ":")))
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		f.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		f.SetInt(int64(n))
	case float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		f.SetFloat(n)
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 90s or 15m", text)
		}
		f.SetInt(int64(d))
	}
	return nil
}

// Check says which setting does not hold, by name and with the choices.
func (c Config) Check() error {
	policies := []string{string(judge.PolicyExecute), string(judge.PolicyDecoy), string(judge.PolicyHold)}
	choices := []struct {
		name, value string
		of          []string
	}{
		{"engine", c.Engine, []string{"docker", "oci"}},
		{"on_exit", c.OnExit, []string{"keep", "remove"}},
		{"log_level", c.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"log_format", c.LogFormat, []string{"text", "json"}},
		{"preset", c.Preset, []string{"balanced", "strict", "observe"}},
		{"answers", c.Answers, []string{"decoy", "explicit"}},
		{"witness", c.Witness, []string{"observe", "deny", "off"}},
		{"judge.on_unsure", c.Judge.OnUnsure, policies},
		{"judge.on_failure", c.Judge.OnFailure, policies},
		{"judge.on_outage", c.Judge.OnOutage, policies},
	}
	for _, ch := range choices {
		if !slices.Contains(ch.of, ch.value) {
			return fmt.Errorf("%s is %q; it must be one of %s", ch.name, ch.value, strings.Join(ch.of, ", "))
		}
	}
	if c.Judge.URL != "" && c.Judge.Model == "" {
		return errors.New("judge.url is set without judge.model; name the model that the endpoint serves")
	}
	if c.OCI.UserNS != 0 && (c.OCI.UserNS < 1<<16 || c.OCI.UserNS > 1<<31-1<<17) {
		return fmt.Errorf("oci.user_ns is %d; it must be 0 (no user namespace) or a host id from 65536 up", c.OCI.UserNS)
	}
	if c.PoolMax < 0 || c.PoolMax > 4096 {
		return fmt.Errorf("pool_max is %d; it must be 0 (no pool) to 4096", c.PoolMax)
	}
	if _, err := c.Egress.Ranges(); err != nil {
		return err
	}
	if c.PackageIndex != "" {
		if _, err := pypi.New(index.Options{Upstream: c.PackageIndex}); err != nil {
			return fmt.Errorf("package_index: %w", err)
		}
	}
	if c.NPMIndex != "" {
		if _, err := npm.New(index.Options{Upstream: c.NPMIndex}); err != nil {
			return fmt.Errorf("npm_index: %w", err)
		}
	}
	if c.Egress.MaxMB < 0 {
		return fmt.Errorf("egress.max_mb is %d; it must be 0 (the default) or more", c.Egress.MaxMB)
	}
	if c.Lease < time.Second {
		return fmt.Errorf("lease is %v; it must be at least 1s", c.Lease)
	}
	return nil
}

// Ranges gives the private ranges.
func (e Egress) Ranges() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for text := range strings.SplitSeq(e.Private, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("egress.private holds %q; it must be ranges such as 10.1.0.0/16, joined by commas", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// Shown gives the settings as they may be printed: without the users of addresses.
func (c Config) Shown() Config {
	for _, address := range []*string{&c.PackageIndex, &c.NPMIndex} {
		if u, err := url.Parse(*address); err == nil && u.User != nil {
			u.User = nil
			*address = u.String()
		}
	}
	return c
}
