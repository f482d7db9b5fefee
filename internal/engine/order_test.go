package engine

import (
	"cmp"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

// Of two requests that waited equally long, the one of the higher priority starts first, and of two
// of one priority the one that waited longer does: at every priority, the extreme ones included.
func TestPriorities(t *testing.T) {
	priority := rapid.OneOf(rapid.Int(), rapid.IntRange(-3, 3), rapid.IntRange(math.MaxInt-3, math.MaxInt),
		rapid.IntRange(math.MinInt, math.MinInt+3))
	submitted := func(priority, steps int, number int64) *job {
		return &job{Request: Request{Priority: priority}, number: number,
			began: time.Now().Add(-time.Duration(steps)*ageing - ageing/2)}
	}
	e := &Engine{}
	cases.Check(t, 40, func(rt *rapid.T) {
		p, q := priority.Draw(rt, "priority"), priority.Draw(rt, "other priority")
		waited, longer := rapid.IntRange(0, 1000).Draw(rt, "steps waited"), rapid.IntRange(0, 3).Draw(rt, "steps more")
		if got := e.order(submitted(p, waited, 1), submitted(q, waited, 1)); got != cmp.Compare(q, p) {
			rt.Errorf("priorities %d and %d after %d steps compare as %d", p, q, waited, got)
		}
		a, b := submitted(p, waited, 2), submitted(p, waited+longer, 1)
		if got := e.order(a, b); got != 1 {
			rt.Errorf("priority %d after %d steps and after %d compare as %d", p, waited, waited+longer, got)
		}
	})
}

// Where many tenants were served, a new one counts from the least served as ever.
func TestNewTenantAmongMany(t *testing.T) {
	e := &Engine{served: map[string]float64{}}
	for i := range mostTenants + 1 {
		e.served[fmt.Sprint(i)] = 100
	}
	e.running = []*job{{Request: Request{Tenant: "0"}}}
	e.queue = []*job{{Request: Request{Tenant: "new"}}}
	e.forgetTenants()
	e.register("new")
	if got := e.served["new"]; got != 100 || len(e.served) != 2 {
		t.Errorf("the new one counts from %g, and %d tenants are known; want 100 and 2", got, len(e.served))
	}
}
