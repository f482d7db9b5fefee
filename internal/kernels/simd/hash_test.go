package simd

import (
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"pgregory.net/rapid"
)

// FirstHash is the portable search at every level.
func TestFirstHash(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key, n := rapid.Uint64().Draw(r, "key"), rapid.IntRange(0, 300).Draw(r, "n")
		least := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(1<<63-5, 1<<63+5), rapid.Uint64Range(0, 3),
			rapid.Uint64Range(1<<64-1<<58, 1<<64-1)).Draw(r, "least")
		if n > 0 && rapid.Bool().Draw(r, "exact") { // a hash that is there
			least = hash(key + uint64(rapid.IntRange(1, n).Draw(r, "which"))*golden)
		}
		want := firstHashGeneric(key, n, least)
		for _, l := range cpu.Levels() {
			restore := cpu.Use(l)
			got := FirstHash(key, n, least)
			restore()
			if got != want {
				r.Fatalf("%v: %d, want %d", l, got, want)
			}
		}
	})
}

// FirstHashOf gives each token the hash that FirstHash gives its number, at every level.
func TestFirstHashOf(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.Uint64().Draw(r, "key")
		tokens := rapid.SliceOfN(rapid.Int32(), 0, 200).Draw(r, "tokens")
		least := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(1<<63-5, 1<<63+5),
			rapid.Uint64Range(1<<64-1<<58, 1<<64-1)).Draw(r, "least")
		if len(tokens) > 0 && rapid.Bool().Draw(r, "exact") { // a hash that is there
			least = hash(key + uint64(int64(rapid.SampledFrom(tokens).Draw(r, "which"))+1)*golden)
		}
		want := len(tokens)
		for i, token := range tokens {
			if FirstHash(key+uint64(int64(token))*golden, 1, least) == 0 {
				want = i
				break
			}
		}
		for _, l := range cpu.Levels() {
			restore := cpu.Use(l)
			got := FirstHashOf(key, tokens, least)
			restore()
			if got != want {
				r.Fatalf("%v: %d, want %d", l, got, want)
			}
		}
	})
}

// Every place of a turn is searched: the largest of many hashes is found where it is, and nothing above it.
func TestFirstHashOfTheLargest(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		r := newRand(3)
		for range 2000 {
			key, n := r.Uint64(), 1+r.IntN(80)
			tokens := make([]int32, n)
			var best, bestOf uint64
			at, atOf := 0, 0
			for i := range tokens {
				tokens[i] = int32(r.Uint32())
				if h := hash(key + uint64(i+1)*golden); h > best {
					best, at = h, i
				}
				if h := hash(key + uint64(int64(tokens[i])+1)*golden); h > bestOf {
					bestOf, atOf = h, i
				}
			}
			if got := FirstHash(key, n, best); got != at {
				t.Fatalf("the largest hash of %d is at %d, found at %d", n, at, got)
			}
			if got := FirstHash(key, n, best+1); got != n {
				t.Fatalf("found at %d of %d, there is none", got, n)
			}
			if got := FirstHashOf(key, tokens, bestOf); got != atOf {
				t.Fatalf("the largest listed hash of %d is at %d, found at %d", n, atOf, got)
			}
			if got := FirstHashOf(key, tokens, bestOf+1); got != n {
				t.Fatalf("found at %d of %d listed, there is none", got, n)
			}
		}
	})
}

func BenchmarkFirstHash(b *testing.B) {
	for _, l := range cpu.Levels() {
		b.Run(l.String(), func(b *testing.B) {
			defer cpu.Use(l)()
			for b.Loop() {
				FirstHash(1, 16384, 1<<64-1)
			}
		})
	}
}
