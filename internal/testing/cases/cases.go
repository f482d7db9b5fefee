// Package cases draws fewer cases for expensive properties.
package cases

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Check is rapid.Check with n cases of every 100 that -rapid.checks or RAPID_CHECKS asks for, at least
// one. Without them, and without -short, it draws n. It is not for parallel tests: they share the flag.
func Check(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	all, err := strconv.Atoi(f.Value.String())
	if err != nil {
		t.Fatal(err)
	}
	set := func(checks int) {
		if err := f.Value.Set(strconv.Itoa(checks)); err != nil {
			t.Fatal(err)
		}
	}
	defer set(all)
	least := 1
	if testing.Short() {
		least = 5 // rapid draws a fifth of it
	}
	set(max(least, all*n/100))
	rapid.Check(t, property)
}
