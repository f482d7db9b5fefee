package cpu

import (
	"runtime"
	"strings"
	"testing"
)

// The levels are those of this architecture, and no other's names are taken.
func TestLevels(t *testing.T) {
	mine := map[string][]string{"amd64": {"portable", "avx2", "avxvnni", "avx512", "avx512bf16"},
		"arm64": {"portable", "neon", "i8mm"}}[runtime.GOARCH]
	if mine == nil {
		mine = []string{"portable"}
	}
	for i, name := range mine {
		if l, err := Parse(strings.ToUpper(name)); err != nil || l != Level(i) || l.String() != name {
			t.Errorf("%q is level %v, %v; want the %d-th", name, l, err, i)
		}
	}
	for _, name := range []string{"", "neon", "i8mm", "avx2", "avxvnni", "avx512", "avx512bf16", "warp",
		Level(len(mine)).String()} {
		known := false
		for _, m := range mine {
			known = known || m == name
		}
		if l, err := Parse(name); !known && (err == nil || !strings.Contains(err.Error(), Names())) {
			t.Errorf("%q is level %v, %v; want an error that names %s", name, l, err, Names())
		}
	}
	ls := Levels()
	if ls[0] != Portable || ls[len(ls)-1] != Best() || len(ls) > len(mine) {
		t.Errorf("levels %v up to %v of %v", ls, Best(), mine)
	}
}

func TestUse(t *testing.T) {
	was := Active()
	restore := Use(Portable)
	if Active() != Portable {
		t.Errorf("level %v, want portable", Active())
	}
	restore()
	if Active() != was {
		t.Errorf("level %v, want %v back", Active(), was)
	}
	defer func() {
		if recover() == nil {
			t.Error("a level beyond the best could be used")
		}
	}()
	Use(Best() + 1)
}
