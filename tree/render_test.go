package tree

import (
	"fmt"
	"math"
	"testing"
)

func ExampleTree_Render() {
	names := []string{"func", " main", "(", " Test", "Parse", "Read"}
	log := func(p float64) float32 { return float32(math.Log(p)) }
	t := New(0)
	a := t.Append(0, 1, log(.61))
	t.Append(a, 2, log(.97))
	b := t.Append(0, 3, log(.12))
	t.Append(b, 4, log(.3))
	t.Append(b, 5, log(.22))
	fmt.Print(t.Render(func(tok int32) string { return names[tok] }, func(i int) bool { return i == 1 || i == 2 }))
	// Output:
	// "func"
	// ├─ " main" 61% * · "(" 97% *
	// └─ " Test" 12%
	//    ├─ "Parse" 30%
	//    └─ "Read" 22%
}

func TestRenderOfOddTrees(t *testing.T) {
	if s := Chain(nil).String(); s != "" {
		t.Errorf("an empty tree is drawn as %q", s)
	}
	if s := New(42).String(); s != "42\n" {
		t.Errorf("a lone root is drawn as %q", s)
	}
}
