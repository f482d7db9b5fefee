package check

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	_ "github.com/grovellm/grove/internal/testing/testfile" // no waiting for the disk
	"github.com/grovellm/grove/tree"
)

// Law 1 on a case of every architecture; grove-lab check bits runs as many as wanted, of all types.
func TestBits(t *testing.T) {
	cases := len(arches)
	if testing.Short() {
		cases = 32
	}
	r, err := Bits(context.Background(), Options{Cases: cases, Seed: 1, Only: -1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Cases != cases || r.Mismatches != 0 {
		t.Errorf("%d cases, %d mismatches:\n%s", r.Cases, r.Mismatches, strings.Join(r.Failures, "\n"))
	}
}

// A case that finds a mismatch is counted and described, and the others run all the same; any
// other error ends the check.
func TestMismatchesAreCounted(t *testing.T) {
	n := -1 // cases of one generation run in order
	r, err := run(context.Background(), Options{Cases: 10, Only: -1}, func(context.Context, *variant, *rand.Rand,
		*int) error {
		n++
		if n%3 == 0 {
			return mismatchf("planted")
		}
		return nil
	})
	if err != nil || r.Cases != 10 || r.Mismatches != 4 || len(r.Failures) != 4 ||
		!strings.Contains(r.Failures[1], "case 3 (seed 0): planted") {
		t.Errorf("got %+v, %v", r, err)
	}
	fault := errors.New("a fault")
	_, err = run(context.Background(), Options{Cases: 10, Only: -1}, func(context.Context, *variant, *rand.Rand,
		*int) error {
		return fault
	})
	if !errors.Is(err, fault) {
		t.Errorf("got %v, want the fault", err)
	}
}

// Every case runs once, and the cases of a model of a generation run together.
func TestInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.IntRange(0, 3*perGeneration).Draw(rt, "from")
		order := inOrder(from, from+rapid.IntRange(1, 2*perGeneration).Draw(rt, "cases"))
		type model struct{ generation, index int }
		done := map[model]bool{}
		last := model{-1, -1}
		for _, n := range order {
			m := model{n / perGeneration, n % shapes()}
			if m != last && done[m] {
				rt.Fatalf("the cases of %+v do not run together", m)
			}
			if m.generation < last.generation {
				rt.Fatalf("generation %d runs after %d", m.generation, last.generation)
			}
			done[m] = true
			last = m
		}
		slices.Sort(order)
		for i, n := range order {
			if n != from+i {
				rt.Fatalf("the cases from %d on have %d in place of %d", from, n, from+i)
			}
		}
	})
}

// An interrupted check reports what it did.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := run(ctx, Options{Cases: 10, Only: -1, Progress: func(done, _ int) {
		if done == 4 {
			cancel()
		}
	}}, func(context.Context, *variant, *rand.Rand, *int) error { return nil })
	if !errors.Is(err, context.Canceled) || r.Cases != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A shuffled tree is the same tree: the text of every node is that of its place.
func TestShuffledKeepsTheTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		a := randomTree(rng, 500, 1+rng.IntN(60))
		b, place := shuffled(rng, a)
		if a.Len() != b.Len() {
			rt.Fatalf("%d nodes became %d", a.Len(), b.Len())
		}
		for i := range a.Token {
			if x, y := textOf(a, i), textOf(b, int(place[i])); x != y {
				rt.Fatalf("node %d: %s became %s", i, x, y)
			}
		}
		if err := b.Check(500); err != nil {
			rt.Fatal(err)
		}
	})
}

// withPath holds the text on the path it returns, whatever else it holds.
func TestWithPathHoldsTheText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		text := randomTokens(rng, 20, 1+rng.IntN(12))
		tr, path := withPath(rng, 20, text, rng.IntN(30))
		for i, node := range path {
			if tr.Token[node] != text[i] || i > 0 && tr.Parent[node] != path[i-1] {
				rt.Fatalf("path %v of %v does not hold %v", path, tr, text)
			}
		}
	})
}

func textOf(t *tree.Tree, node int) string {
	var b strings.Builder
	for _, i := range t.Path(node, nil) {
		b.WriteByte(' ')
		b.WriteString(string(rune('a' + t.Token[i])))
	}
	return b.String()
}

// Law 2 for requests that run together, on a few cases; grove-lab check serve runs as many as wanted.
func TestServe(t *testing.T) {
	const cases = 8
	r, err := Serve(context.Background(), Options{Cases: cases, Seed: 1, Only: -1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Cases != cases || r.Mismatches != 0 || r.Tokens == 0 {
		t.Errorf("%d cases, %d tokens, %d mismatches:\n%s", r.Cases, r.Tokens, r.Mismatches, strings.Join(r.Failures, "\n"))
	}
}

// Law 2 on a few cases; grove-lab check tokens runs as many as wanted.
func TestTokens(t *testing.T) {
	const cases = 5
	r, err := Tokens(context.Background(), Options{Cases: cases, Seed: 1, Only: -1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Cases != cases || r.Mismatches != 0 || r.Tokens == 0 {
		t.Errorf("%d cases, %d tokens, %d mismatches:\n%s", r.Cases, r.Tokens, r.Mismatches, strings.Join(r.Failures, "\n"))
	}
}

// Prompts of every length, on a model whose layers have windows and are without by turns, and of which some are longer
// than a range of attention.
func TestLengths(t *testing.T) {
	shape, err := synth.Lookup("tiny-gemma3")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	defer nn.UseRanges(2)()
	r, err := Lengths(context.Background(), LengthOptions{
		Model: path, From: 1, To: 700, Step: 61, Tokens: 3, Threads: []int{1, 2, 4}, Callers: []int{1, 8}, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Cases == 0 || r.Tokens != 3*r.Sequences || r.Mismatches != 0 {
		t.Errorf("%+v", r)
	}
}
