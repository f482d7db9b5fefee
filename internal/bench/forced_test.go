package bench

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// With any drafter, at any temperature and under any rule, a target that is made to write a text
// writes it, as far as requested; otherwise it writes its own.
func TestForced(t *testing.T) {
	target := tinyPair(t)
	cases.Check(t, 50, func(t *rapid.T) {
		b := &bench{o: SpecOptions{Target: target, MaxTokens: rapid.IntRange(1, 40).Draw(t, "most"), IgnoreEnd: true}}
		m := Method{
			Drafter:      rapid.SampledFrom([]string{"", "lookup", "fixed:d=3,b=2", "jetspec", "ddtree", "hostile"}).Draw(t, "drafter"),
			Budget:       rapid.IntRange(2, 20).Draw(t, "budget"),
			Accept:       rapid.SampledFrom([]string{speculate.Coupled, speculate.Rejection}).Draw(t, "rule"),
			Uncontrolled: rapid.Bool().Draw(t, "uncontrolled"),
		}
		params := sample.Params{Temperature: rapid.SampledFrom([]float32{0, 0.7, 2}).Draw(t, "temperature")}
		if rapid.Bool().Draw(t, "top-p") {
			params.TopP = 0.8
		}
		token := rapid.Int32Range(0, int32(target.Vocab)-1)
		p := encoded{prompt: rapid.SliceOfN(token, 1, 30).Draw(t, "prompt")}
		generate := func(p encoded) []int32 {
			l, err := b.lane(m, params, speculate.NewController())
			if err != nil {
				t.Fatal(err)
			}
			g, err := l.generate(context.Background(), p, 1)
			if err != nil {
				t.Fatal(err)
			}
			return g.tokens
		}
		free := generate(p)
		forced := p
		forced.forced = rapid.SliceOfN(token, 1, 50).Draw(t, "text")
		if rapid.Bool().Draw(t, "repeats") {
			forced.forced = append(slices.Clone(p.prompt), p.prompt...)
		}
		if got, want := generate(forced), forced.forced[:min(len(forced.forced), b.o.MaxTokens)]; !slices.Equal(got, want) {
			t.Fatalf("%s writes %v, made to write %v", m.String(), got, want)
		}
		if m.compared(params) {
			m.Drafter = ""
			if got := generate(p); !slices.Equal(got, free) {
				t.Fatalf("plain decoding writes %v, %s wrote %v", got, m.String(), free)
			}
		}
	})
}

// In any tree, the logits of nodes on the text's path have the text's next token on top; all others are the target's.
func TestForcedPath(t *testing.T) {
	target := tinyPair(t)
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.Int32Range(0, 3) // few, so that paths often follow the text
		f := &forcedTarget{Target: speculate.Model(target.Model), from: rapid.IntRange(0, 4).Draw(t, "from"),
			text: rapid.SliceOfN(token, 1, 8).Draw(t, "text")}
		draws := tree.New(token.Draw(t, "root"))
		for range rapid.IntRange(0, 20).Draw(t, "nodes") {
			if parent, token := rapid.IntRange(0, draws.Len()-1).Draw(t, "parent"), token.Draw(t,
				"token"); draws.Child(parent, token) < 0 {
				draws.Append(parent, token, 0)
			}
		}
		rows := speculate.Rows{Tree: draws}
		for i := range draws.Len() {
			rows.Logits = append(rows.Logits, int32(i))
		}
		var passes [2]speculate.Pass
		for i, target := range []speculate.Target{f.Target, f} {
			passes[i], rows.Cache = target.NewPass(), target.NewCache()
			defer rows.Cache.Free()
			if err := passes[i].Run(context.Background(), []speculate.Rows{rows}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range draws.Len() {
			want := slices.Clone(passes[0].Logits(0, i))
			path := draws.Path(i, nil) // the nodes from the root on; their positions begin at 0
			along := len(path) >= f.from && len(path)-f.from < len(f.text)
			for at, node := range path {
				along = along && (at < f.from || draws.Token[node] == f.text[at-f.from])
			}
			if along {
				want[f.text[len(path)-f.from]] = forcedLogit
			}
			if !slices.Equal(passes[1].Logits(0, i), want) {
				t.Fatalf("node %d of\n%v\ntext %v from %d: other logits than wanted", i, draws, f.text, f.from)
			}
		}
	})
}
