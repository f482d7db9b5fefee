//go:build arm64 && !purego

package cpu

import (
	"os"
	"strings"
	"testing"
)

// What Linux says of an arm64 processor gives its level.
func TestLevelIsFound(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip("no list of processor features to hold the level against")
	}
	_, features, ok := strings.Cut(string(info), "\nFeatures")
	if !ok {
		t.Skip("no features in /proc/cpuinfo")
	}
	features, _, _ = strings.Cut(features, "\n")
	if want := strings.Contains(features+" ", " asimddp "); want != (Best() == NEON) {
		t.Errorf("the best level is %v; asimddp claimed: %v", Best(), want)
	}
}
