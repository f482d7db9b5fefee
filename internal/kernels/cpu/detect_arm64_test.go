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
	claims := func(feature string) bool { return strings.Contains(features+" ", " "+feature+" ") }
	for l, want := range map[Level]bool{NEON: claims("asimddp"), I8MM: claims("asimddp") && claims("i8mm")} {
		if Has(l) != want {
			t.Errorf("level %v: found %v, claimed %v", l, Has(l), want)
		}
	}
}
