package serve

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
)

// Headers of the Gateway API Inference Extension and of llm-d's router, under their current and earlier names.
var (
	fairnessHeaders  = []string{"X-Llm-D-Inference-Fairness-Id", "X-Gateway-Inference-Fairness-Id"}
	objectiveHeaders = []string{"X-Llm-D-Inference-Objective", "X-Gateway-Inference-Objective"}
	firstHeaders     = []string{"X-Llm-D-Slo-Ttft-Ms", "X-Slo-Ttft-Ms"}
)

// timeoutHeaders say how long the client or a proxy waits for the answer, in the given unit.
var timeoutHeaders = map[string]time.Duration{"X-Request-Timeout": time.Second,
	"X-Envoy-Expected-Rq-Timeout-Ms": time.Millisecond}

// deadline returns when the answer must have ended: by the server's limit, or earlier if the headers say so.
func (x *exchange) deadline() time.Time {
	allowed := x.s.o.Time
	for name, unit := range timeoutHeaders {
		n, err := strconv.ParseFloat(x.r.Header.Get(name), 64)
		if err == nil && n > 0 && n < allowed.Seconds()/unit.Seconds() {
			allowed = time.Duration(n * float64(unit))
		}
	}
	return x.began.Add(allowed)
}

// header returns the first of several headers that the request has.
func (x *exchange) header(names []string) string {
	for _, name := range names {
		if value := x.r.Header.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// setOrder sets what determines when a request is computed: its key and tenant, its priority, and
// the deadline of its first token.
func (x *exchange) setOrder(o *options, r *grove.Request) {
	r.Priority = o.Priority.or(x.s.o.Objectives[x.header(objectiveHeaders)])
	r.Tenant = x.tenant
	if x.tenant != "" { // a key is responsible for what it says about its users
		user := x.header(fairnessHeaders)
		inside.RequestOptionsOf(r).Key = x.tenant
		r.Tenant += "/" + cmp.Or(user, o.User)
	}
	if ms, err := strconv.ParseFloat(x.header(firstHeaders), 64); err == nil && ms > 0 && ms < math.MaxInt32 {
		r.Deadline = x.began.Add(time.Duration(ms * float64(time.Millisecond)))
	}
}
