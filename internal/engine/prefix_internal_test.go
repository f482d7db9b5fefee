package engine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
)

// openTiny opens a small random model until the test ends.
func openTiny(t *testing.T) *model.Model {
	t.Helper()
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// The newest text of every conversation is kept as long as memory allows: half of what is still
// available, or what prefixes may take anyway. Otherwise the least recently used texts are dropped.
// So a turn of a conversation computes only its own tokens.
func TestPrefixMemoryGrowsWithTheMachine(t *testing.T) {
	m := openTiny(t)
	pages := m.NewCache().Pages()
	row := int64(pages.RowBytes())
	cases.Check(t, 40, func(t *rapid.T) {
		least, available := row*rapid.Int64Range(0, 500).Draw(t, "least"), row*rapid.Int64Range(0, 4000).Draw(t, "available")
		e, err := New(speculate.Model(m), Options{Pages: []*nn.Pages{pages}, Available: func() int64 { return available }})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		e.prefixes.least = least
		texts := make([][]int32, rapid.IntRange(1, 3).Draw(t, "conversations"))
		var recent []int // conversations by their last turn, the newest first
		for range rapid.IntRange(2, 8).Draw(t, "turns") {
			c := rapid.IntRange(0, len(texts)-1).Draw(t, "conversation")
			had := len(texts[c])
			if had > 350 {
				continue
			}
			for range rapid.IntRange(1, 100).Draw(t, "tokens") {
				texts[c] = append(texts[c], int32((len(texts[c])*7+c)%50))
			}
			reused, ended := 0, make(chan error, 1)
			r := Request{Prompt: texts[c], Request: speculate.Request{MaxTokens: 2}}
			r.Step = func(u *Update) { reused = u.Stats.Reused; texts[c] = append(texts[c], u.Tokens...) }
			r.Done = func(err error) { ended <- err }
			if err := e.Submit(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			// Pages are whole, and texts of a conversation share them.
			need := int64(0)
			for i, other := range recent {
				need += (int64(len(texts[other])) + nn.PageRows) * row
				if other != c {
					continue
				}
				if allowed := max(available/2, least); need <= allowed && reused < had-1 {
					t.Fatalf("turn %d back: %d of %d tokens are reused, though %d bytes are allowed and all conversations since take %d",
						i, reused, had, allowed, need)
				}
			}
			recent = append([]int{c}, slices.DeleteFunc(recent, func(o int) bool { return o == c })...)
		}
		if held := min(e.prefixes.bytes, e.inUse()); held > max(available/2, least) {
			t.Fatalf("prefixes take %d bytes of %d", held, max(available/2, least))
		}
	})
}
