package egress

import (
	"net/http"
	"net/netip"

	"proctor/sandbox"
	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/npm"
	"proctor/sandbox/egress/index/pypi"
)

// Addresses of the indexes inside. pip, uv, npm and pnpm take an index on loopback without TLS for
// trustworthy; yarn is told to.
var (
	IndexAddr = netip.MustParseAddrPort("127.0.0.12:80")
	NPMAddr   = netip.MustParseAddrPort("127.0.0.13:80") // as npm.Origin has it
)

// opening is a package index behind a door of a sandbox.
type opening struct {
	door    sandbox.Door
	kind    string // of its events
	host    string // what its events call it
	handler http.Handler
}

// openings gives those of the server's indexes, under a rule.
func (p *Proxy) openings(rule index.Rule) []opening {
	var all []opening
	if m := p.opts.Python; m != nil {
		all = append(all, opening{sandbox.Door{Name: "@index", Addr: IndexAddr}, KindIndex, "package index", m.Handler(rule)})
	}
	if m := p.opts.NPM; m != nil {
		all = append(all, opening{sandbox.Door{Name: "@npm", Addr: NPMAddr}, KindNPM, "npm index", m.Handler(rule)})
	}
	return all
}

// IndexEnv is the environment that points programs inside at the server's indexes.
func (p *Proxy) IndexEnv() map[string]string {
	env := map[string]string{}
	if p.opts.Python != nil {
		address := "http://" + IndexAddr.Addr().String() + pypi.SimplePath
		for _, name := range []string{"PIP_INDEX_URL", "UV_INDEX_URL"} {
			env[name] = address
		}
	}
	if p.opts.NPM != nil {
		nodeEnv(env)
	}
	return env
}

// nodeEnv adds the settings of npm, pnpm, yarn 1 and yarn from 2 on. What a registry has beside packages is
// not there, so npm is not to ask for it: an audit would end each install with a warning.
func nodeEnv(env map[string]string) {
	for _, name := range []string{"npm_config_registry", "pnpm_config_registry", "YARN_REGISTRY"} {
		env[name] = npm.Origin + "/"
	}
	env["YARN_NPM_REGISTRY_SERVER"] = npm.Origin
	env["YARN_UNSAFE_HTTP_WHITELIST"] = NPMAddr.Addr().String()
	for _, name := range []string{"npm_config_audit", "npm_config_fund", "npm_config_update_notifier"} {
		env[name] = "false"
	}
}

// opening gives the index behind a door.
func (r *relay) opening(door string) (opening, bool) {
	for _, o := range r.indexes {
		if o.door.Name == door {
			return o, true
		}
	}
	return opening{}, false
}
