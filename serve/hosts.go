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

// allowHost refuses requests that name another host than this server's, where no keys are set. A
// web page whose name was made to lead to this machine (DNS rebinding) is of the same origin as the
// server then, for a browser. Such a page has a name: an address as the host is none. It reports
// whether the request is to be answered further.
func (s *Server) allowHost(x *exchange) bool {
	connected := x.r.Context().Value(http.LocalAddrContextKey) != nil // not a handler's direct call
	if s.o.Keys != nil || slices.Contains(s.o.CORS, "*") || !connected {
		return true
	}
	origin := x.r.Header.Get("Origin")
	from, err := url.Parse(origin)
	switch name := hostName(x.r.Host); {
	case name != "" && !s.isHost(name):
		x.fail(newError(http.StatusForbidden, "invalid_request_error", "host_not_allowed",
			"%q is not a host of this server: start it with --allow-host %s, or with --keys", name, name))
		return false
	case err != nil || from.Host == "" || s.isHost(hostName(from.Host)) || slices.Contains(s.o.CORS, origin):
		return true
	}
	x.fail(crossOrigin(origin))
	return false
}

// crossOrigin is the error of a call that a web page of another origin may not make.
func crossOrigin(origin string) error {
	return newError(http.StatusForbidden, "invalid_request_error", "cross_origin",
		"a web page of %q may not call this server: start it with --cors and that origin, or with --cors '*'", origin)
}

// hostName is a host without its port, in small letters.
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
			return fmt.Errorf("the host %q: want a name without scheme and port, *.NAME for those below it, or * for any",
				host)
		}
	}
	return nil
}
