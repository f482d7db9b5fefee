package grove

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/model/synth"
)

// A drafter serves every later generation that names it, and what is kept is bounded.
func TestDraftersAreKept(t *testing.T) {
	shape, err := synth.Lookup("tiny-llama2")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d := &m.drafting
	use := func(text string) (any, string) {
		t.Helper()
		o, name, err := d.use(m, text)
		if err != nil {
			t.Fatal(err)
		}
		return o, name
	}
	a, name := use("lookup")
	if b, _ := use("lookup"); a != b || name != "lookup" {
		t.Errorf("a drafter is not kept, or is called %q", name)
	}
	if b, _ := use("lookup:min=2"); a == b {
		t.Error("two drafters are the same")
	}
	for _, none := range []string{"", "plain"} {
		if o, name, err := d.use(m, none); o != nil || name != "" || err != nil {
			t.Errorf("%q: %v, %q, %v", none, o, name, err)
		}
	}
	for i := range 3 * maxDrafters {
		_, name = use(fmt.Sprintf("lookup:min=%d", 3+i))
	}
	if len(d.drafters) > maxDrafters || name != "other" {
		t.Errorf("%d drafters are kept, and the last is called %q", len(d.drafters), name)
	}
}
