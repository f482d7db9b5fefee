package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// allowHost refuses requests that name another host, where no keys are set. To a browser, a web
// page whose name was made to resolve to this machine (DNS rebinding) has the server's origin. Such
// a page has a host name, so addresses are allowed. It reports whether to go on with the request.
func (s *Server) allowHost(x *exchange) bool {
	connected := x.r.Context().Value(http.LocalAddrContextKey) != nil // false where a handler is called directly
	if s.o.Keys != nil || slices.Contains(s.o.CORS, "*") || !connected {
		return true
	}
	origin := x.r.Header.Get("Origin")
	from, err := url.Parse(origin)
	switch name := hostName(x.r.Host); {
	case name != "" && !s.isHost(name):
		x.fail(newError(http.StatusForbidden, "invalid_request_error", "host_not_allowed",
			"%q is not a host name of this server: start the server with --allow-host %s, or with --keys", name, name))
		return false
	case err != nil || from.Host == "" || s.isHost(hostName(from.Host)) || slices.Contains(s.o.CORS, origin):
		return true
	}
	x.fail(crossOrigin(origin))
	return false
}

// crossOrigin returns the error of a call that a web page of another origin may not make.
func crossOrigin(origin string) error {
	return newError(http.StatusForbidden, "invalid_request_error", "cross_origin",
		"a web page from %q may not call this server: start the server with --cors and that origin, or with --cors '*'", origin)
}

// hostName returns a host without its port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isHost reports whether a name means this server: an address, a name of the loopback address, or
// one of Options.Hosts.
func (s *Server) isHost(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(allowed string) bool {
		allowed = strings.ToLower(allowed)
		parent, isPattern := strings.CutPrefix(allowed, "*")
		return name == allowed || isPattern && strings.HasSuffix(name, parent)
	})
}

// checkHosts refuses hosts that no request can name.
func checkHosts(hosts []string) error {
	for _, host := range hosts {
		name, isPattern := strings.CutPrefix(host, "*")
		if host == "" || strings.ContainsAny(name, "*/: ") || isPattern && name != "" && name[0] != '.' {
			return fmt.Errorf("the host %q: want a name without scheme and port, *.NAME for its subdomains, or * for any name",
				host)
		}
	}
	return nil
}
