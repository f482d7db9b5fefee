package simd

import (
	"testing"

	"github.com/grovellm/grove/internal/cpu"
	"pgregory.net/rapid"
)

// FirstHash is the portable search at every level.
func TestFirstHash(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key, n := rapid.Uint64().Draw(r, "key"), rapid.IntRange(0, 300).Draw(r, "n")
		least := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(1<<63-5, 1<<63+5), rapid.Uint64Range(0, 3), rapid.Uint64Range(1<<64-1<<58, 1<<64-1)).Draw(r, "least")
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
		least := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(1<<63-5, 1<<63+5), rapid.Uint64Range(1<<64-1<<58, 1<<64-1)).Draw(r, "least")
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
