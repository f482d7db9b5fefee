package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

// Layers with windows keep no more of a text than they will read. So two texts fit in memory for
// one and a half, and their tokens are those of a request alone. A prompt that continues a kept
// text shares its rows, and one that leaves it where rows were freed is computed anew.
func TestWindowsFreeMemory(t *testing.T) {
	const prompt, n, chunk = 600, 300, 32
	m := openShape(t, "tiny-gemma3")
	pages := m.NewCache().Pages()
	text := pages.TextBytes(prompt+n, chunk)
	if whole := int64(pages.RowBytes()) * (prompt + n); text > whole*9/10 {
		t.Fatalf("a text takes %d bytes, of %d with all rows", text, whole)
	}
	loop := speculate.Options{Chunk: chunk}
	var all sync.WaitGroup
	run := func(e *engine.Engine, r engine.Request) *[]int32 {
		t.Helper()
		got := new([]int32)
		r.Sampling = sample.Params{Temperature: 1, Seed: 3}
		r.Step = func(u *engine.Update) { *got = append(*got, u.Tokens...) }
		all.Add(1)
		r.Done = func(err error) {
			if err != nil {
				t.Error(err)
			}
			all.Done()
		}
		if err := e.Submit(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		return got
	}
	e := start(t, m, engine.Options{Loop: loop})
	alone := func(r engine.Request) []int32 {
		r.Fresh = true
		got := run(e, r)
		all.Wait()
		return *got
	}
	first, other := request(prompt, n), request(prompt, n)
	other.Prompt[0] = 49
	wants := [][]int32{alone(first), alone(other)}

	tight := start(t, m, engine.Options{Loop: loop, CacheMemory: text * 3 / 2})
	got := []*[]int32{run(tight, first), run(tight, other)}
	all.Wait()
	for i, g := range got {
		if !slices.Equal(*g, wants[i]) {
			t.Errorf("with little memory %v, want %v", *g, wants[i])
		}
	}
	if s := tight.Stats(); s.Preempted == 0 || s.CacheBytes > s.CacheLimit {
		t.Errorf("%d bytes of %d, preempted %d", s.CacheBytes, s.CacheLimit, s.Preempted)
	}
	tight.Forget("")

	run(e, first)
	all.Wait()
	if s := e.Stats(); s.CacheBytes > text+nn.PageRows*int64(pages.RowBytes()) {
		t.Errorf("a text has %d bytes, want %d", s.CacheBytes, text)
	}
	next, branch := request(0, 20), request(0, 20)
	next.Prompt = slices.Concat(first.Prompt, wants[0])
	branch.Prompt = append(slices.Clone(first.Prompt[:100]), 3, 4, 5)
	for _, c := range []struct {
		engine.Request
		least, most int64
	}{{branch, 0, 0}, {next, prompt, prompt + n}} {
		before := e.Stats().CachedTokens
		got := run(e, c.Request)
		all.Wait()
		if reused := e.Stats().CachedTokens - before; reused < c.least || reused > c.most {
			t.Errorf("a prompt of %d tokens reuses %d, want %d to %d", len(c.Prompt), reused, c.least, c.most)
		}
		if want := alone(c.Request); !slices.Equal(*got, want) {
			t.Errorf("%v, alone %v", *got, want)
		}
	}
}
