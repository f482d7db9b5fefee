package hostile_test

import (
	"fmt"
	"testing"

	"github.com/grovellm/grove/internal/testing/hostile"
)

// recorder takes the failures of a check.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, a ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, a...))
}

var sink [][]byte

// Memory that is held at once counts; memory that is dropped as fast as it comes does not.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name         string
		blocks, keep int // of 1 MB
		size         int
		fails        bool
	}{
		{"little", 30, 30, 0, false}, {"dropped at once", 150, 1, 0, false}, {"some kept", 150, 30, 0, false},
		{"too much kept", 150, 90, 0, true}, {"as much, of a larger file", 250, 90, 20 << 20, false},
	} {
		r := &recorder{}
		hostile.Check(r, c.size, func() {
			sink = make([][]byte, c.keep)
			for i := range c.blocks {
				sink[i%c.keep] = make([]byte, 1<<20)
			}
			sink = nil
		})
		if (len(r.failures) > 0) != c.fails {
			t.Errorf("%s: %v", c.name, r.failures)
		}
	}
}
