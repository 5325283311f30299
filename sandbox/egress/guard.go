package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// errPrivate says that a name led to an address that is not public.
var errPrivate = errors.New("the name leads to an address that is not public")

// reserved are the ranges that are no public hosts', beside those that netip knows: IANA's registries of
// special-purpose addresses (RFC 6890 and its updates), and the prefixes that carry an IPv4 address within
// an IPv6 one, by which a private address could be written as a public one.
var reserved = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
	"2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16")

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// public reports whether an address is one of the public internet's.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !within(a, reserved)
}

func within(a netip.Addr, ranges []netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// dial resolves a name and connects to the first of its addresses that is allowed and answers.
func (p *Proxy) dial(ctx context.Context, name string, port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	found, err := p.opts.Lookup(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("resolve: %w", err)
	}
	err = errors.New("the name has no address")
	for i, a := range found {
		a = a.Unmap()
		if !public(a) && !within(a, p.opts.Private) {
			err = errPrivate
			continue
		}
		try, cancel := context.WithTimeout(ctx, dialLimit/time.Duration(min(len(found)-i, 3)))
		conn, dialErr := p.opts.Dial(try, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(port)))
		cancel()
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, err
}
