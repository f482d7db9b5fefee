package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/grovellm/grove/serve"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Prometheus' own linter has nothing to say about grove's metrics.
func TestPromlint(t *testing.T) {
	r, err := http.Get(strings.TrimSuffix(start(t, serve.Options{}), "/v1") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	problems, err := promlint.New(r.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "grove_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
