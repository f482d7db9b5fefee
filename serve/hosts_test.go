package serve_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/grovellm/grove/serve"
)

// Without keys, requests and their origins must name an address, a name of the loopback address, or a
// host that the server was given: a name that a web page has pointed at this machine is none of these.
func TestHosts(t *testing.T) {
	good := []string{"", "127.0.0.1", "localhost", "LocalHost.", "model.localhost", "[::1]", "192.168.1.5",
		"told.example", "a.below.example"}
	evil := []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "below.example", "xbelow.example",
		"told.example.evil", "localhos", "evillocalhost"}
	s := start(t, nil, serve.Options{Hosts: []string{"told.example", "*.Below.example"}})
	ask := func(s *server, method, path, host, origin string) int {
		r, err := http.NewRequest(method, s.url+path, strings.NewReader(`{"content":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	for i, host := range append(good, evil...) {
		for _, port := range []string{"", ":8080"} {
			if host == "" && port != "" {
				continue
			}
			want := 200
			if i >= len(good) {
				want = 403
			}
			for _, e := range []struct{ method, path string }{{"POST", "/tokenize"}, {"GET", "/v1/models"}, {"GET", "/"},
				{"GET", "/metrics"}} {
				if status := ask(s, e.method, e.path, host+port, ""); status != want {
					t.Errorf("%s %s of %q: status %d, want %d", e.method, e.path, host+port, status, want)
				}
				if status := ask(s, e.method, e.path, host+port, "http://"+host+port); host != "" && status != want {
					t.Errorf("%s %s of %q, its origin: status %d, want %d", e.method, e.path, host+port, status, want)
				}
				if status := ask(s, e.method, e.path, "localhost", "http://"+host+port); host != "" && status != want {
					t.Errorf("%s %s of an origin %q: status %d, want %d", e.method, e.path, host+port, status, want)
				}
			}
		}
	}
	for _, o := range []serve.Options{{Hosts: []string{"*"}}, {CORS: []string{"*"}}, {Keys: []string{"k"}}} {
		if status := ask(start(t, nil, o), "GET", "/health", "evil.example", ""); status != 200 {
			t.Errorf("%+v: status %d", o, status)
		}
	}
	for _, host := range []string{"", "http://x", "a b", "x:80", "a*b", "*x"} {
		if _, err := serve.New(serve.Options{Hosts: []string{host}}); err == nil {
			t.Errorf("host %q is taken", host)
		}
	}
}
