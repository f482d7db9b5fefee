package speculate_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// foreign is a cache of a type that no target of grove makes. Nothing may touch it.
type foreign struct{ speculate.Cache }

// A request's cache is used if the target made it. Start and passes refuse any other without
// touching it.
func TestRequestCache(t *testing.T) {
	m, other := drafttest.OpenTarget(t, 64), drafttest.OpenTarget(t, 64)
	loop := drafttest.Must(speculate.New(speculate.Model(m), nil, speculate.Options{Chunk: 5}))(t)
	prompt := []int32{7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4}
	generate := func(t drafttest.Fataler, c speculate.Cache) []int32 {
		q := drafttest.Must(loop.Start(prompt, speculate.Request{Cache: c, MaxTokens: 6}))(t)
		defer q.Close()
		for q.Finish() == speculate.Running {
			if err := loop.Step(context.Background(), []*speculate.Sequence{q}); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Clone(q.Output())
	}
	filled := func(t drafttest.Fataler, m *model.Model, rows int) *nn.Cache {
		c := m.NewCache()
		if err := m.NewPass().Prefill(context.Background(), c, prompt[:rows], false); err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := generate(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, len(prompt)).Draw(t, "rows")
		own, theirs := filled(t, m, rows), filled(t, other, rows)
		defer own.Free()
		defer theirs.Free()
		fork := own.Fork()
		defer fork.Free()
		caches := map[string]speculate.Cache{
			"the target's": own, "a fork": fork, "another model's": theirs,
			"another type": foreign{own}, "an empty struct": foreign{}, "a nil pointer": (*nn.Cache)(nil),
		}
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(caches))).Draw(t, "cache")
		c := caches[kind]
		if kind == "the target's" || kind == "a fork" {
			if got := generate(t, c); !slices.Equal(got, want) {
				t.Fatalf("with %d rows of %s: %v, want %v", rows, kind, got, want)
			}
			return
		}
		_, err := loop.Start(prompt, speculate.Request{Cache: c, MaxTokens: 6})
		ran := speculate.Model(m).NewPass().Run(context.Background(), []speculate.Rows{{Cache: c, Tree: tree.New(1)}},
			nil)
		for _, err := range []error{err, ran} {
			if err == nil || !strings.Contains(err.Error(), "cache") || !strings.Contains(err.Error(), "NewCache") {
				t.Fatalf("%s: error %v: want one that names the cache and where to take one", kind, err)
			}
		}
		if own.Len() != rows || theirs.Len() != rows {
			t.Fatalf("%s: %d and %d rows are left of %d", kind, own.Len(), theirs.Len(), rows)
		}
	})
}
