package check

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// Serve checks law 2 for many requests at once: whatever runs beside a request, it gets the tokens
// of plain decoding alone.
//
// A case is a random model, drafters of a few kinds, and an engine with a random number of places and a random limit of
// memory. Requests with prompts that begin alike, drafters, tenants, priorities and sampling
// options of their own come while others are under way; some are cancelled. Their order depends on
// the clock, so a case that is run again may go another way.
func Serve(ctx context.Context, o Options) (Report, error) { return run(ctx, o, serveCase) }

func serveCase(ctx context.Context, v *variant, rng *rand.Rand, tokens *int) (ended error) {
	vocab := v.shape.Vocab
	level := randomLevel(rng, 40)
	scripts := make([]script, 3+rng.IntN(6))
	for i := range scripts {
		s := &scripts[i]
		*s = randomScript(rng, v)
		if i > 0 && rng.IntN(2) == 0 { // a prompt that begins like another, or like its answer
			other := &scripts[rng.IntN(i)]
			text := slices.Concat(other.prompt, other.want)
			s.prompt = append(slices.Clone(text[:1+rng.IntN(len(text))]), s.prompt[:rng.IntN(len(s.prompt))]...)
		}
		if err := s.decodePlainly(ctx, v, level); err != nil {
			return err
		}
	}
	defer cpu.Use(randomLevel(rng, 40))()
	opened, err := v.threads(1 + rng.IntN(maxThreads))
	if err != nil {
		return err
	}
	drafters, learning := map[string]draft.Drafter{}, &learners{rng: rng, vocab: vocab, o: opened}
	defer func() { ended = errors.Join(ended, learning.Close()) }()
	for _, name := range append(randomHeads(rng, v), "lookup", "hostile", randomModelDrafter(rng, vocab),
		randomMerge(rng, v)) {
		if rng.IntN(2) == 0 {
			if drafters[name], err = drafter(ctx, name, rng, scripts, v, learning); err != nil {
				return err
			}
		}
	}
	names := append([]string{""}, slices.Sorted(maps.Keys(drafters))...)
	pages := opened.m.NewCache().Pages()
	longest := 0
	for _, s := range scripts {
		longest = max(longest, len(s.prompt)+len(s.want))
	}
	o := engine.Options{
		Parallel: 1 + rng.IntN(8), Pages: []*nn.Pages{pages},
		Loop: speculate.Options{Chunk: 1 + rng.IntN(64), Uncontrolled: rng.IntN(2) == 0},
	}
	if longest < 300 && rng.IntN(2) == 0 { // enough for the longest alone, and for some rows of what drafts for it
		o.CacheMemory = pages.TextBytes(longest+2*nn.PageRows+rng.IntN(2*longest), o.Loop.Chunk)
	}
	e, err := engine.New(speculate.Model(opened.m), o)
	if err != nil {
		return err
	}
	defer e.Close()
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	for range 2 + skewed(rng, 40, 300) {
		s := &scripts[rng.IntN(len(scripts))]
		r := engine.Request{Request: s.request, Prompt: s.prompt, Priority: rng.IntN(3),
			Tenant: []string{"", "other"}[rng.IntN(2)], Fresh: rng.IntN(8) == 0}
		r.Name = names[rng.IntN(len(names))]
		r.Drafter = drafters[r.Name]
		own, cancel := context.WithCancel(ctx)
		leave := -1
		if rng.IntN(4) == 0 {
			leave = rng.IntN(20)
		}
		var got []int32
		var finish speculate.Finish
		r.Step = func(u *engine.Update) {
			got, finish = append(got, u.Tokens...), u.Finish
			if leave >= 0 && len(got) >= leave {
				cancel()
			}
		}
		all.Add(1)
		r.Done = func(err error) {
			defer all.Done()
			cancel()
			mu.Lock()
			defer mu.Unlock()
			*tokens += len(got)
			left := err != nil && leave >= 0 && errors.Is(err, context.Canceled)
			switch {
			case err != nil && !left:
				failed = append(failed, err)
			case !slices.Equal(got, s.want[:min(len(got), len(s.want))]) || !left &&
				(len(got) != len(s.want) || finish != s.finish):
				failed = append(failed, mismatchf("%v, drafter %s of %s, %+v, %d places, %d bytes: %v, ended by %s; alone: %v, ended by %s",
					v, r.Name, strings.Join(names, " and "), s.request.Sampling, o.Parallel, o.CacheMemory, got,
					finish, s.want, s.finish))
			}
		}
		if err := e.Submit(own, r); err != nil {
			r.Done(err)
		}
		if rng.IntN(3) == 0 { // let some steps pass
			for at := e.Stats().Steps + int64(rng.IntN(6)); e.Stats().Steps < at && e.Stats().Running > 0; {
				runtime.Gosched()
			}
		}
	}
	all.Wait()
	for _, err := range failed {
		if _, wrong := err.(mismatch); wrong {
			return err
		}
	}
	return errors.Join(failed...)
}
