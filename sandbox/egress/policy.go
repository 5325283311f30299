package egress

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"proctor/sandbox/egress/index"
)

// Policy is what one sandbox may reach. The zero value is nothing.
type Policy struct {
	// Hosts are names as a task writes them: each stands for itself and all names below it, at ports 80
	// and 443, and at the port that it ends in.
	Hosts []string
	// Index, where set, says what of the server's package indexes exists.
	Index *index.Rule
}

// defaultPorts are those of every allowed host.
var defaultPorts = []int{80, 443}

// Check gives an error for an entry that is no host.
func (p Policy) Check() error {
	for _, entry := range p.Hosts {
		if _, _, err := splitEntry(entry); err != nil {
			return err
		}
	}
	return nil
}

// Ports gives the ports at which a name may be reached; none where it may not.
func (p Policy) Ports(name string) []int {
	name = canonical(name)
	var ports []int
	for _, entry := range p.Hosts {
		host, port, err := splitEntry(entry)
		if err != nil || name != host && !strings.HasSuffix(name, "."+host) {
			continue
		}
		if port != 0 {
			ports = append(ports, port)
		}
		ports = append(ports, defaultPorts...)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// splitEntry takes an entry apart: host, *.host, host:port. The port is 0 where there is none.
func splitEntry(entry string) (host string, port int, err error) {
	host = entry
	if h, p, cut := strings.Cut(entry, ":"); cut {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("allowed host %q: %q is not a port", entry, p)
		}
		host, port = h, int(n)
	}
	host = canonical(strings.TrimPrefix(host, "*."))
	if host == "" || strings.ContainsAny(host, "*/@ ") {
		return "", 0, fmt.Errorf("allowed host %q: not a host's name", entry)
	}
	return host, port, nil
}

// canonical gives a name as names are compared.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// splitTarget takes a request's host apart, with the port that its scheme implies.
func splitTarget(hostport string, implied int) (name string, port int, ok bool) {
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		return canonical(strings.Trim(hostport, "[]")), implied, hostport != ""
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return canonical(host), int(n), err == nil && n > 0 && host != ""
}
