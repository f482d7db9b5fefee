package grove_test

import (
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
)

// A closed session leaves nothing in the cache, even if its last generation was interrupted just before.
func TestClosedSessionKeepsNothing(t *testing.T) {
	m := open(t, "tiny-qwen2", grove.Options{Threads: 1})
	for chunks := range 10 {
		s, left := m.NewSession(), chunks
		for _, err := range s.Generate(ctx, "go go go and more of the same", grove.Request{IgnoreEnd: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if left == 0 {
				break
			}
			left--
		}
		s.Close()
	}
	if err := m.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if s := inside.EngineStats(m); s.PrefixBytes != 0 || s.CacheBytes != 0 {
		t.Errorf("%d bytes of prefixes, %d in all", s.PrefixBytes, s.CacheBytes)
	}
}
