package grove

import (
	"fmt"
	"testing"
)

// What a controller has learned of a drafter serves every later generation with it, and only with it; what is kept is bounded.
func TestControllersAreKept(t *testing.T) {
	var d drafting
	a := d.options(method{drafter: "lookup"}).Controller
	if a == nil || d.options(method{drafter: "lookup", accept: "rejection"}).Controller != a {
		t.Error("a drafter's controller is not kept")
	}
	if d.options(method{drafter: "lookup:min=2"}).Controller == a {
		t.Error("two drafters share a controller")
	}
	for _, m := range []method{{}, {drafter: "plain"}, {drafter: "lookup", uncontrolled: true}} {
		if o := d.options(m); o.Controller != nil || o.Uncontrolled != m.uncontrolled {
			t.Errorf("%+v: %+v", m, o)
		}
	}
	for i := range 10 * maxControllers {
		d.options(method{drafter: fmt.Sprintf("lookup:min=%d", i)})
	}
	if len(d.controllers) > maxControllers {
		t.Errorf("%d controllers are kept", len(d.controllers))
	}
}
