package data

import (
	"fmt"
	"strings"
	"testing"
)

func TestFunctionPrompts(t *testing.T) {
	var b strings.Builder
	b.WriteString("package p\n\n")
	for i := range 50 {
		fmt.Fprintf(&b, "// F%d does it.\nfunc F%d(x int) int {\n\treturn x + %d\n}\n\n", i, i, i)
	}
	docs := []Document{textDocument("a.go", b.String()), textDocument("a_test.go", b.String()),
		textDocument("b.go", "package b\n\ntype T int\n")}
	got := FunctionPrompts(docs, 200)
	if len(got) != 50 {
		t.Fatalf("%d prompts, want 50", len(got))
	}
	for _, d := range got {
		text := d.Text()
		if len(text) > 200 || !strings.HasSuffix(text, "(x int) int {\n") || !strings.Contains("\n"+b.String(), "\n"+text) {
			t.Errorf("prompt %q", text)
		}
	}
}
