package cases_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
)

// A search draws its share of the cases that a property draws otherwise, and leaves the others theirs.
func TestCheck(t *testing.T) {
	count := func(check func(property func(*rapid.T))) (n int) {
		check(func(*rapid.T) { n++ })
		return n
	}
	whole := func(property func(*rapid.T)) { rapid.Check(t, property) }
	before := count(whole)
	for _, share := range []int{1, 20, 100} {
		got := count(func(property func(*rapid.T)) { cases.Check(t, share, property) })
		if want := max(1, before*share/100); got != want {
			t.Errorf("%d of 100: %d cases of %d, want %d", share, got, before, want)
		}
	}
	if after := count(whole); after != before {
		t.Errorf("%d cases after them, %d before", after, before)
	}
}
