// Package testdata finds the data that tests and benchmarks read but the repository does not contain.
package testdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of name in the data folder: $GROVE_DATA, or shared/data next to the
// repository. If the folder does not contain it, Path skips the test and says so.
func Path(t testing.TB, name string) string {
	t.Helper()
	p := filepath.Join(Dir(), filepath.FromSlash(name))
	if _, err := os.Stat(p); err != nil {
		t.Skipf("no %s in the data folder %s (set GROVE_DATA to where it is)", name, Dir())
	}
	return p
}

// Dir returns the data folder, which need not exist.
func Dir() string {
	if d := os.Getenv("GROVE_DATA"); d != "" {
		return d
	}
	dir, err := os.Getwd()
	if err != nil {
		return "data"
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return filepath.Join(filepath.Dir(d), "shared", "data")
		}
		if d == filepath.Dir(d) {
			return "data"
		}
	}
}
