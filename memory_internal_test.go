package grove

import (
	"fmt"
	"testing"

	"github.com/grovellm/grove/models"
)

// However many tenants there are, few have their texts open, in a folder or without one; those in use stay.
func TestMemoriesAreFew(t *testing.T) {
	m, err := OpenGGUF("embedded", models.Target(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, dir := range []string{"", t.TempDir()} {
		m.memories = &memories{o: MemoryOptions{Dir: dir}, open: map[string]*memoryUse{}}
		used, leave, err := m.remembered("in use")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 * mostMemories {
			if err := m.Remember(fmt.Sprint(i), "one two three four"); err != nil {
				t.Fatal(err)
			}
			if n := len(m.memories.open); n > mostMemories {
				t.Fatalf("%d tenants' texts are open, with folder %q", n, dir)
			}
		}
		if m.memories.open["in use"] != used {
			t.Error("texts in use were closed")
		}
		leave()
		if err := m.memories.close(); err != nil {
			t.Fatal(err)
		}
	}
}
