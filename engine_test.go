package grove_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Requests of any kind that run together give the text that each gives alone, however much memory
// there is, whichever clients leave, and whichever prefixes they share; and nothing is leaked.
func TestTogetherAsAlone(t *testing.T) {
	path := write(t, "tiny-qwen2")
	alone := openFile(t, path, grove.Options{Threads: 1})
	prompts := []string{"go go go", "go go gone and more of the same, and more of the same, and more", "x",
		"go go gone and more of the same, and then something else"}
	type answer struct {
		prompt string
		r      grove.Request
		want   *grove.Result
	}
	var answers []answer
	for i := range 12 {
		a := answer{prompt: prompts[i%len(prompts)], r: grove.Request{
			MaxTokens: 1 + 7*i, Drafter: []string{"", "lookup", "lookup:min=2"}[i%3], Budget: 4 +
				i, Uncontrolled: i%2 == 0, IgnoreEnd: true,
			Sampling: grove.Sampling{Temperature: float32(i % 2), Seed: uint64(i), FrequencyPenalty: float32(i%3) / 4},
			Logprobs: i%4 > 0, TopLogprobs: i % 4, PromptLogprobs: i%7 == 0,
		}}
		a.want = collect(t, alone, a.prompt, a.r)
		answers = append(answers, a)
	}
	cases.Check(t, 20, func(rt *rapid.T) {
		// The longest text has about 145 tokens; a token takes 512 bytes in this model at most.
		o := grove.Options{Threads: 1, Parallel: rapid.IntRange(1, 6).Draw(rt, "parallel"),
			CacheMemory: rapid.SampledFrom([]int64{0, 400 << 10, 1 << 20}).Draw(rt, "memory")}
		m, err := grove.Open(path, o)
		if err != nil {
			rt.Fatal(err)
		}
		defer m.Close()
		seed := rapid.Uint64().Draw(rt, "seed")
		var wg sync.WaitGroup
		n := rapid.IntRange(2, 16).Draw(rt, "requests")
		for i := range n {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			a := answers[rng.IntN(len(answers))]
			a.r.Tenant, a.r.Priority = []string{"", "other"}[rng.IntN(2)], rng.IntN(3)
			leave := -1
			if rng.IntN(3) == 0 {
				leave = rng.IntN(8)
			}
			wg.Go(func() {
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
				own, cancel := context.WithCancel(ctx)
				defer cancel()
				var tokens []int32
				for c, err := range m.Generate(own, a.prompt, a.r) {
					if err != nil {
						if leave < 0 || !errors.Is(err, context.Canceled) {
							rt.Errorf("request %d: %v", i, err)
						}
						return
					}
					tokens = append(tokens, c.Tokens...)
					if a.r.Logprobs != (len(c.Logprobs) == len(c.Tokens) && len(c.Logprobs) > 0) {
						rt.Errorf("%d log-probabilities of %d tokens", len(c.Logprobs), len(c.Tokens))
					}
					leave--
					if leave == 0 {
						if rng.IntN(2) == 0 {
							break
						}
						cancel()
					}
				}
				if want := a.want.Tokens; !slices.Equal(tokens, want[:min(len(tokens), len(want))]) || leave < 0 &&
					len(tokens) != len(want) {
					rt.Errorf("request %d, %+v: %v, want %v", i, a.r, tokens, want)
				}
			})
		}
		wg.Wait()
		if err := m.Drain(ctx); err != nil {
			rt.Fatal(err)
		}
		s := inside.EngineStats(m)
		if s.Submitted != int64(n) || s.Finished+s.Cancelled+s.Failed != int64(n) || s.Failed > 0 || s.Running+s.Waiting > 0 {
			rt.Errorf("%+v", s)
		}
		if o.CacheMemory > 0 && s.CacheBytes > o.CacheMemory {
			rt.Errorf("%d bytes of %d are in use", s.CacheBytes, o.CacheMemory)
		}
		if _, err := grove.Collect(m.Generate(ctx, "late", grove.Request{})); !errors.Is(err, grove.ErrClosed) {
			rt.Errorf("after Drain: %v", err)
		}
		if _, err := m.Embed(ctx, []int32{1}, grove.EmbedOptions{}); err != nil { // perhaps the next of a request's texts
			rt.Errorf("an embedding after Drain: %v", err)
		}
	})
}
