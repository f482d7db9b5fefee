package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// generated runs a request by itself.
func generated(t *testing.T, e *engine.Engine, r engine.Request) (tokens []int32, reused int) {
	t.Helper()
	done := make(chan error, 1)
	r.Step = func(u *engine.Update) {
		tokens = append(tokens, u.Tokens...)
		reused = u.Stats.Reused
	}
	r.Done = func(err error) { done <- err }
	if err := e.Submit(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return tokens, reused
}

// openStored opens a model. run runs and closes an engine with prefixes in a folder and the given memory.
func openStored(t *testing.T, shape string, kv nn.KVType, memory int64) (run func(do func(*engine.Engine)),
	dir string, reports *[]error) {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1, KV: kv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	dir, reports = t.TempDir(), new([]error)
	var mu sync.Mutex
	return func(do func(*engine.Engine)) {
		t.Helper()
		store, err := pagestore.Open(dir, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		o := engine.Options{Disk: store, Model: shape, CacheMemory: memory}
		o.Loop.Report = func(err error) { mu.Lock(); *reports = append(*reports, err); mu.Unlock() }
		e := start(t, m, o)
		do(e)
		e.Close()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}, dir, reports
}

// Texts of models with recurrent layers continue from the states in files: after their prompt or, if nothing
// was generated, where the last pass began. If one of its files is missing, a text is computed again.
func TestRecurrentLayersInFiles(t *testing.T) {
	for i, shape := range []string{"tiny-qwen35", "tiny-lfm2", "tiny-granite-hybrid", "tiny-falcon-h1"} {
		run, dir, reports := openStored(t, shape, nn.KVF32, 0)
		alone := func(e *engine.Engine, r engine.Request) []int32 {
			r.Fresh = true
			tokens, _ := generated(t, e, r)
			return tokens
		}
		check := func(what string, e *engine.Engine, r engine.Request, want []int32, least, most int) {
			t.Helper()
			if got, reused := generated(t, e, r); reused < least || reused > most || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d rows are read, tokens %v, want %d to %d and %v", shape, what, reused, got, least, most, want)
			}
		}
		rng := rand.New(rand.NewPCG(7, 0))
		for range 2 {
			long := request(150+rng.IntN(400), 30)
			long.Tenant = fmt.Sprint("of ", len(long.Prompt))
			var first []int32
			run(func(e *engine.Engine) { first, _ = generated(t, e, long) })
			next, other := long, long
			next.Prompt = append(slices.Concat(long.Prompt, first), 3, 4, 5)
			other.Tenant = "not " + long.Tenant
			short := request(700+rng.IntN(99), 1)
			short.Tenant = "short " + long.Tenant
			n := len(long.Prompt)
			run(func(e *engine.Engine) {
				check("the next turn", e, next, alone(e, next), n-32, n+29)
				check("another tenant", e, other, alone(e, other), 0, 0)
				generated(t, e, short)
			})
			run(func(e *engine.Engine) {
				check("one token", e, short, alone(e, short), len(short.Prompt)-speculate.DefaultChunk-nn.PageRows, 800)
			})
		}
		if len(*reports) > 0 {
			t.Error(*reports)
		}
		damage := []func(string) error{os.Remove, func(file string) error { return os.Truncate(file, 100) }}[i%2]
		files, err := filepath.Glob(filepath.Join(dir, "*.kv"))
		if err != nil || len(files) < 4 {
			t.Fatalf("files %v, %v", files, err)
		}
		for i, file := range files {
			if i%2 == 0 {
				if err := damage(file); err != nil {
					t.Fatal(err)
				}
			}
		}
		rng = rand.New(rand.NewPCG(7, 0))
		run(func(e *engine.Engine) {
			for range 2 {
				long := request(150+rng.IntN(400), 30)
				long.Tenant = fmt.Sprint("of ", len(long.Prompt))
				check("damaged", e, long, alone(e, long), 0, len(long.Prompt))
			}
		})
	}
}

// An engine that is restarted continues from the prefixes of the previous one, with the same text,
// and only for the same tenant.
func TestPrefixesInFiles(t *testing.T) {
	for _, kv := range []nn.KVType{nn.KVF32, nn.KVBF16, nn.KVQ8} {
		run, _, reports := openStored(t, "tiny-qwen3", kv, 0)
		long := request(400, 30)
		var first, want []int32
		run(func(e *engine.Engine) { first, _ = generated(t, e, long) })
		next := long
		next.Prompt = append(slices.Concat(long.Prompt, first), 3, 4, 5)
		fresh, other := next, next
		fresh.Fresh = true
		other.Tenant = "other"
		run(func(e *engine.Engine) {
			want, _ = generated(t, e, fresh)
			got, reused := generated(t, e, next)
			if reused != 384 || !slices.Equal(got, want) { // 3 blocks of 128 rows
				t.Errorf("%v: %d rows are read, tokens %v, want %v", kv, reused, got, want)
			}
			got, reused = generated(t, e, next)
			if reused < 430 || !slices.Equal(got, want) {
				t.Errorf("%v: %d rows are in memory, tokens %v, want %v", kv, reused, got, want)
			}
			got, reused = generated(t, e, other)
			if reused != 0 || !slices.Equal(got, want) {
				t.Errorf("%v: another tenant has %d rows, tokens %v, want %v", kv, reused, got, want)
			}
			s := e.Stats()
			if s.Files.Read != 3 || s.Missed != 3 || s.Files.Refused != 0 || s.Files.Blocks < 3 || s.Files.Bytes == 0 {
				t.Errorf("%v: files %+v, %d blocks missed, want 3 of the other tenant", kv, s.Files, s.Missed)
			}
		})
		if len(*reports) > 0 {
			t.Error(*reports)
		}
	}
}

// Simultaneous requests have the same text as one alone, and a damaged block is computed again.
func TestDamagedPrefixInFiles(t *testing.T) {
	run, dir, reports := openStored(t, "tiny-qwen3", nn.KVF32, 0)
	long := request(400, 30)
	var want []int32
	run(func(e *engine.Engine) { want, _ = generated(t, e, long) })
	files, err := filepath.Glob(filepath.Join(dir, "*.kv"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := slices.Clone(b)
		changed[len(b)/2] ^= 4
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		*reports = nil
		run(func(e *engine.Engine) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					var got []int32
					done := make(chan error, 1)
					r := long
					r.Step = func(u *engine.Update) { got = append(got, u.Tokens...) }
					r.Done = func(err error) { done <- err }
					if err := e.Submit(context.Background(), r); err != nil {
						t.Error(err)
						return
					}
					if err := <-done; err != nil || !slices.Equal(got, want) {
						t.Errorf("tokens %v, %v, want %v", got, err, want)
					}
				})
			}
			all.Wait()
			if s := e.Stats().Files; s.Refused != 1 {
				t.Errorf("%d blocks are refused, want 1", s.Refused)
			}
		})
		if len(*reports) != 1 {
			t.Errorf("told of %v", *reports)
		}
		if now, err := os.ReadFile(file); err != nil || !slices.Equal(now, b) {
			t.Errorf("the block is not written anew: %v", err)
		}
	}
}

// If layers have windows, texts whose first rows were freed are not kept in files.
func TestWindowsInFiles(t *testing.T) {
	run, dir, reports := openStored(t, "tiny-mistral", nn.KVF32, 0)
	short, long := request(200, 20), request(900, 20)
	long.Tenant = "long"
	for range 2 {
		run(func(e *engine.Engine) {
			for _, r := range []engine.Request{short, long} {
				fresh := r
				fresh.Fresh = true
				want, _ := generated(t, e, fresh)
				if got, _ := generated(t, e, r); !slices.Equal(got, want) {
					t.Errorf("tokens %v, want %v", got, want)
				}
			}
		})
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.kv")); err != nil || len(files) != 1 || len(*reports) > 0 {
		t.Errorf("files %v, %v, told of %v", files, err, *reports)
	}
}

// Rows that wait to be written take no memory from requests: with little memory, all run as without
// files. The last text, which no request follows, is written when the engine closes.
func TestLittleMemoryWithFiles(t *testing.T) {
	run, dir, reports := openStored(t, "tiny-qwen3", nn.KVF32, 500*4*2*64*2*4) // 500 rows
	for range 2 {
		run(func(e *engine.Engine) {
			for i := range 12 {
				r := request(440, 10)
				r.Tenant = string(rune('a' + i%5))
				fresh := r
				fresh.Fresh = true
				want, _ := generated(t, e, fresh)
				if got, _ := generated(t, e, r); !slices.Equal(got, want) {
					t.Errorf("tokens %v, want %v", got, want)
				}
			}
		})
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.kv")); err != nil || len(files) == 0 || len(*reports) > 0 {
		t.Errorf("files %v, %v, told of %v", files, err, *reports)
	}
}
