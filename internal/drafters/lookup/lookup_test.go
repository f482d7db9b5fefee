package lookup

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

func genText(r *rapid.T, most int) []int32 {
	letters := rapid.Int32Range(0, rapid.SampledFrom([]int32{0, 1, 3, 20}).Draw(r, "alphabet"))
	n := rapid.IntRange(0, most).Draw(r, "length") // a slice of random length would nearly always be short
	return rapid.SliceOfN(letters, n, n).Draw(r, "text")
}

// ends returns the places in text where sub ends.
func ends(text, sub []int32) (at []int32) {
	for i := len(sub); i <= len(text); i++ {
		if slices.Equal(text[i-len(sub):i], sub) {
			at = append(at, int32(i))
		}
	}
	return at
}

func begin(t interface{ Fatal(...any) }, o Options, opt draft.Options, text []int32) (draft.Drafter, draft.State) {
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Begin(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Commit([]draft.Rows{{State: s, Tokens: text, Next: -1}}); err != nil {
		t.Fatal(err)
	}
	return d, s
}

func propose(t interface{ Fatal(...any) }, d draft.Drafter, s draft.State, root int32, budget, depth int) *tree.Tree {
	tr := tree.New(root)
	if _, err := d.Propose(context.Background(), []draft.Request{{State: s, Tree: tr, Budget: budget,
		Depth: depth}}); err != nil {
		t.Fatal(err)
	}
	return tr
}

// Every path of a proposal followed the end of the text somewhere before, and is within budget,
// depth and floor.
func TestProposalsAreContinuations(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text, predicted := genText(r, 120), genText(r, 40)
		root := rapid.Int32Range(0, 4).Draw(r, "root")
		o := Options{
			Min:    rapid.IntRange(1, 3).Draw(r, "min"),
			Levels: rapid.IntRange(1, 4).Draw(r, "levels"),
			Floor:  rapid.SampledFrom([]float32{.001, .05, .5}).Draw(r, "floor"),
		}
		opt := draft.Options{Predicted: predicted}
		if rapid.Bool().Draw(r, "warm") {
			opt.Sampling = sample.Params{Temperature: 1, Seed: 3}
		}
		budget, depth := rapid.IntRange(1, 40).Draw(r, "budget"), rapid.IntRange(0, 20).Draw(r, "depth")
		d, s := begin(r, o, opt, text)
		tr := propose(r, d, s, root, budget, depth)
		if err := tr.Check(21); err != nil {
			r.Fatal(err)
		}
		if tr.Len() > budget || tr.MaxDepth() > depth {
			r.Fatalf("%d nodes and depth %d for a budget of %d and %d", tr.Len(), tr.MaxDepth(), budget, depth)
		}
		end := append(slices.Clone(text), root)
		for i := 1; i < tr.Len(); i++ {
			if p := tr.PathLogProb(i); float64(p) < -7 || p > 0 {
				r.Fatalf("node %d has path log-probability %g", i, p)
			}
			cont := slices.Clone(end)
			for _, n := range tr.Path(i, nil)[1:] {
				cont = append(cont, tr.Token[n])
			}
			if start := cont[len(text):]; len(start) <= len(predicted) && slices.Equal(start, predicted[:len(start)]) {
				continue // the beginning of the predicted output
			}
			cont = cont[max(0, len(cont)-1-o.Min):]
			if len(cont) <= o.Min || len(ends(text, cont))+len(ends(predicted, cont)) == 0 {
				r.Fatalf("%v never followed the end of %v", cont, end)
			}
		}
		if len(ends(text, end[max(0, len(end)-o.Min):])) == 0 &&
			len(ends(predicted, end[max(0, len(end)-o.Min):])) == 0 && tr.Len() > 1 && predicted[0] != root {
			r.Fatal("something was drafted where nothing matches")
		}
		again := propose(r, d, s, root, budget, depth)
		if again.String() != tr.String() {
			r.Fatalf("two proposals differ:\n%s%s", tr, again)
		}
	})
}

func ids(s string) []int32 {
	return []int32(slices.Collect(func(yield func(int32) bool) {
		for _, c := range s {
			if !yield(c) {
				return
			}
		}
	}))
}

func TestBranchesAndRanking(t *testing.T) {
	d, s := begin(t, Default(), draft.Options{}, ids(" the cat sat. the cat ran. the dog sat. the ca"))
	tr := propose(t, d, s, 't', 30, 20)
	var starts []string
	for _, c := range tr.Children(0, nil) {
		starts = append(starts, string(rune(tr.Token[c])))
	}
	if !slices.Contains(starts, " ") {
		t.Errorf("the longest match's continuation is missing:\n%s",
			tr.Render(func(tok int32) string { return string(rune(tok)) }, nil))
	}
	node := 0
	for _, c := range " " {
		node = tr.Child(node, c)
	}
	if ran, sat := tr.Child(node, 'r'), tr.Child(node, 's'); ran < 0 || sat < 0 {
		t.Errorf("both continuations should branch:\n%s", tr.Render(func(tok int32) string { return string(rune(tok)) }, nil))
	} else if tr.LogProb[ran] < tr.LogProb[sat] {
		t.Error("of two continuations seen once the newer one should be likelier")
	}
}

func TestPredictedOutputIsDrafted(t *testing.T) {
	d, s := begin(t, Default(), draft.Options{Predicted: ids("alpha beta gamma")}, ids("say it:"))
	if tr := propose(t, d, s, 'a', 16, 30); !strings.Contains(spell(tr), "alpha bet") {
		t.Errorf("drafted %q", spell(tr))
	}
}

// spell returns the tokens of the path of first children.
func spell(tr *tree.Tree) string {
	var b strings.Builder
	for i := 0; ; {
		b.WriteRune(rune(tr.Token[i]))
		kids := tr.Children(i, nil)
		if len(kids) == 0 {
			return b.String()
		}
		i = int(kids[0])
	}
}

// If the coupled noise is known, it decides between equally likely candidates.
func TestNoiseRanks(t *testing.T) {
	var text []int32
	for i := range int32(80) {
		text = append(text, 1000+i, 'x', 'a'+i%2) // the tokens before it never recur
	}
	agree := 0
	const n = 200
	for seed := range uint64(n) {
		d, s := begin(t, Default(), draft.Options{Sampling: sample.Params{Temperature: 1, Seed: seed}}, text)
		tr := propose(t, d, s, 'x', 2, 5)
		want := int32('a')
		if sample.Noise(seed, len(text)+1, 'b') > sample.Noise(seed, len(text)+1, 'a') {
			want = 'b'
		}
		if tr.Len() < 2 || tr.Token[1] == want {
			agree++
		}
	}
	if agree < n*9/10 {
		t.Errorf("the candidate with the larger noise came first %d times of %d", agree, n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, text := range []string{"lookup:min=0", "lookup:levels=0", "lookup:levels=99", "lookup:floor=0",
		"lookup:floor=2", "lookup:floor=NaN", "lookup:depth=3"} {
		if _, err := registry.New(text, registry.Target{}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	if _, err := registry.New("lookup:min=2,floor=0.1", registry.Target{}); err != nil {
		t.Error(err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	text := ids(strings.Repeat("for i := range n { sum += x[i] }\n", 40))
	d, s := begin(t, Default(), draft.Options{Sampling: sample.Params{Temperature: 1}}, text)
	ctx := context.Background()
	tr := tree.New(0)
	requests := []draft.Request{{State: s, Tree: tr, Budget: 16, Depth: 20}}
	rows := []draft.Rows{{State: s, Tokens: make([]int32, 3)}}
	i := 0
	round := func() {
		tr.Reset(text[i%len(text)])
		if _, err := d.Propose(ctx, requests); err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			rows[0].Tokens[k] = text[(i+k)%len(text)]
		}
		i += 3
		if err := d.Commit(rows); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		round()
	}
	a := s.(*state).text
	a.Grow(2000) // amortised growth is not under test
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("%g allocations a round, want 0", n)
	}
}

func BenchmarkRound(b *testing.B) {
	text := ids(strings.Repeat("for i := range n { sum += x[i] }\nif sum > most { most = sum }\n", 60))
	d, s := begin(b, Default(), draft.Options{}, text)
	ctx := context.Background()
	tr := tree.New(0)
	requests := []draft.Request{{State: s, Tree: tr, Budget: 16, Depth: 20}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tr.Reset(text[i%len(text)])
		if _, err := d.Propose(ctx, requests); err != nil {
			b.Fatal(err)
		}
	}
}
