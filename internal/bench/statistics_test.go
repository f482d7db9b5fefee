package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want Quartiles
	}{
		{nil, Quartiles{}}, {[]float64{4}, Quartiles{4, 4, 4}}, {[]float64{3, 1}, Quartiles{1.5, 2, 2.5}},
		{[]float64{5, 1, 3, 2, 4}, Quartiles{2, 3, 4}}, {[]float64{1, 2, 3, 4}, Quartiles{1.75, 2.5, 3.25}},
	} {
		if got := quartiles(c.v); got != c.want {
			t.Errorf("quartiles of %v are %v, want %v", c.v, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-9, 9), 1, 40).Draw(t, "v")
		before := slices.Clone(v)
		q := quartiles(v)
		if !slices.Equal(v, before) || q[0] < slices.Min(v) || q[0] > q[1] || q[1] > q[2] || q[2] > slices.Max(v) ||
			math.Abs(q[1]-median(v)) > 1e-12 {
			t.Errorf("quartiles of %v are %v", before, q)
		}
	})
}

// A token of an output is copied if it ends four tokens that occur in the prompt. Some of the four
// may be the prompt's last.
func TestCopied(t *testing.T) {
	for _, c := range []struct {
		prompt, output []int32
		want           float64
	}{
		{nil, nil, 0}, {[]int32{1, 2, 3, 4}, nil, 0}, {nil, []int32{1, 2, 3, 4, 1, 2, 3, 4}, 0}, {[]int32{1, 2, 3},
			[]int32{1, 2, 3, 4}, 0},
		{[]int32{1, 2, 3, 4, 5, 9}, []int32{1, 2, 3, 4, 5, 6}, 2. / 6}, {[]int32{1, 2, 3, 4, 8, 1, 2, 3}, []int32{4, 8}, 1},
	} {
		if got := copied(c.prompt, c.output); got != c.want {
			t.Errorf("of %v after %v %g is copied, want %g", c.output, c.prompt, got, c.want)
		}
	}
}

func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		tokens []int32
		want   int
	}{
		{nil, 0}, {[]int32{1, 2, 3}, 0}, {[]int32{1, 1, 1, 1}, 0}, {[]int32{1, 1, 1, 1, 1, 1},
			2}, {[]int32{1, 2, 3, 4, 1, 2, 3, 4}, 1},
		{[]int32{1, 2, 3, 4, 1, 2, 3, 5}, 0}, {[]int32{1, 2, 3, 4, 9, 1, 2, 3, 4}, 1},
	} {
		n := 0
		for _, again := range Repeats(c.tokens) {
			if again {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%v repeats %d runs of %d tokens, want %d", c.tokens, n, gram, c.want)
		}
	}
	// Text without repetition has none; in a text repeated once, all of the copy except its first three tokens repeats.
	rapid.Check(t, func(t *rapid.T) {
		text := make([]int32, rapid.IntRange(4, 50).Draw(t, "n"))
		for i := range text {
			text[i] = int32(i)
		}
		got := Repeats(append(slices.Clone(text), text...))
		for i, again := range got {
			if again != (i >= len(text)+gram-1) {
				t.Fatalf("token %d of %d twice: %v", i, len(text), again)
			}
		}
	})
}

// output makes a generation of rounds with those numbers of tokens, each of which took a
// millisecond of its own and an accepted node for each token except one.
func output(tokens []int32, rounds ...int) *generation {
	g := &generation{tokens: tokens, first: 5 * time.Millisecond}
	for _, n := range rounds {
		g.rounds = append(g.rounds, round{tokens: n, drafted: 2 * (n - 1), accepted: n - 1, time: time.Millisecond})
	}
	return g
}

func TestPart(t *testing.T) {
	g := output(nil, 3, 4, 1) // tokens 2–4, 5–8 and 9
	ms := time.Millisecond
	for _, c := range []struct {
		from, to int
		want     part
	}{
		{1, 100, part{8, 3, 10, 5, 3 * ms}},
		{1, 1, part{}}, // the first token belongs to no round
		{1, 4, part{3, 1, 4, 2, ms}},
		{1, 5, part{7, 2, 10, 5, 2 * ms}}, // a round counts where its first token is
		{6, 100, part{1, 1, 0, 0, ms}},
		{9, 9, part{1, 1, 0, 0, ms}},
		{10, 100, part{}},
	} {
		if got := g.part(c.from, c.to); got != c.want {
			t.Errorf("tokens %d to %d: %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
	// However an output is cut, its parts add up to the whole.
	rapid.Check(t, func(t *rapid.T) {
		g := output(nil, rapid.SliceOfN(rapid.IntRange(1, 9), 0, 60).Draw(t, "rounds")...)
		at := rapid.IntRange(1, 300).Draw(t, "at")
		sum := g.part(1, at)
		sum.add(g.part(at+1, 1<<30))
		if sum != g.whole() {
			t.Errorf("cut at %d: %+v, want %+v", at, sum, g.whole())
		}
	})
}

// Repeats of a sampled output differ in length: each counts in the parts that it has.
func TestPartsOfRepeatsOfSeveralLengths(t *testing.T) {
	repeat := func(rounds ...int) *generation {
		n := 1
		for _, k := range rounds {
			n += k
		}
		return output(make([]int32, n), rounds...)
	}
	plain := []*generation{repeat(1, 1, 1, 1), repeat(1, 1, 1, 1, 1, 1), repeat(1, 1, 1, 1)}
	sampled := []*generation{repeat(2, 2, 2), repeat(2), repeat(3, 3, 3)} // of 7, 3 and 10 tokens
	s := suiteRun{cases: []measured{{plain, sampled}}}
	for _, c := range []struct {
		from, to, least int
		want            PartReport
	}{
		{1, 3, 1, PartReport{From: 1, To: 3, Prompts: 1, Tokens: 7, Tau: 7. / 3, Speedup: 2}},
		{1, 4, 4, PartReport{From: 1, To: 4, Prompts: 1, Tokens: 7, Tau: 7. / 3, Speedup: 2.5}},
		{6, 12, 1, PartReport{From: 6, To: 12, Prompts: 1, Tokens: 5, Tau: 2.5}},
		{11, 12, 1, PartReport{From: 11, To: 12}},
	} {
		got := s.part(1, c.from, c.to, c.least)
		got = PartReport{From: got.From, To: got.To, Prompts: got.Prompts, Tokens: got.Tokens, Tau: got.Tau,
			Speedup: got.Speedup}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("tokens %d to %d: %s", c.from, c.to, diff)
		}
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		a, b []int32
		want int
	}{{nil, nil, 0}, {[]int32{1, 2}, []int32{1, 2}, 0}, {[]int32{1, 2}, []int32{1, 3, 4}, 2}, {nil, []int32{7}, 1}} {
		if got := differences(c.a, c.b); got != c.want {
			t.Errorf("%v and %v differ in %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// Over a whole design each method is equally often in each place, and after each other method.
func TestOrder(t *testing.T) {
	for n := 1; n <= 9; n++ {
		rounds := n
		if n%2 == 1 {
			rounds = 2 * n
		}
		place, after := map[string]int{}, map[string]int{}
		for r := range rounds {
			o := order(n, r)
			sorted := slices.Clone(o)
			slices.Sort(sorted)
			for i, m := range o {
				if sorted[i] != i {
					t.Fatalf("%d methods, round %d: %v", n, r, o)
				}
				place[fmt.Sprint(m, i)]++
				if i > 0 {
					after[fmt.Sprint(o[i-1], m)]++
				}
			}
		}
		for _, counts := range []struct {
			got  map[string]int
			many int
		}{{place, n * n}, {after, n * (n - 1)}} {
			values := map[int]bool{}
			for _, v := range counts.got {
				values[v] = true
			}
			if len(counts.got) != counts.many || counts.many > 0 && len(values) != 1 {
				t.Errorf("%d methods: %v", n, counts.got)
			}
		}
	}
}

func TestLengths(t *testing.T) {
	for _, c := range []struct {
		o    SpecOptions
		want []int
	}{
		{SpecOptions{MaxTokens: 200}, []int{32, 64, 128, 200}}, {SpecOptions{MaxTokens: 8}, []int{8}},
		{SpecOptions{MaxTokens: 200, Lengths: []int{150, 100, 100, 900, 0}}, []int{100, 150, 200}},
	} {
		if diff := cmp.Diff(c.want, lengths(&c.o)); diff != "" {
			t.Errorf("%+v: %s", c.o, diff)
		}
	}
}
