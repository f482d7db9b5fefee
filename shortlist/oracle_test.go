package shortlist

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/sample"
)

// What is measured of real lists keeps to the theory: coverage is at most the oracle's, and acceptance at most the coverage (Lemma 1);
// it is the coverage where the drafter is the target, and Lemma 2's oracle is then the best in acceptance too. Of all tokens nothing is lost.
func TestAgreementKeepsToTheory(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		vocab := rapid.IntRange(1, 300).Draw(t, "vocab")
		head, _ := randomHead(r, vocab, 8)
		ranks := randomRanks(r, vocab)
		var m Method
		var err error
		if rapid.Bool().Draw(t, "context") {
			m, err = NewContext(pool, head, ranks, rapid.IntRange(1, vocab).Draw(t, "core"), 40)
		} else {
			m, err = NewFrequent(pool, head, ranks, rapid.IntRange(1, vocab).Draw(t, "size"), rapid.Bool().Draw(t, "position-aware"))
		}
		if err != nil {
			t.Fatal(err)
		}
		s := m.Begin(&sample.Params{})
		defer s.Close()
		var one, own, all Agreement
		for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
			s.Commit([]int32{r.Int32N(int32(vocab))})
			p, q := narrow(distribution(t, vocab, "target")), narrow(distribution(t, vocab, "drafter"))
			lists := make([]*List, 1)
			m.Choose([]Query{{State: s, Step: step}}, lists)
			one.Add(lists[0], p, q)
			own.Add(lists[0], p, p)
			all.Add(nil, p, q)
			want := 0.0
			for token := range p {
				want += float64(min(p[token], q[token]))
			}
			if step == 0 && math.Abs(all.Accept()-want) > 1e-5 {
				t.Fatalf("over all tokens %g are accepted, want %g", all.Accept(), want)
			}
		}
		const slack = 1e-5 // of float32 probabilities
		switch {
		case one.Coverage() > one.Oracle()+slack:
			t.Fatalf("coverage %g, above the oracle's %g", one.Coverage(), one.Oracle())
		case one.Accept() > one.Coverage()+slack || one.OracleAccept() > one.Oracle()+slack:
			t.Fatalf("acceptance %g of a list with %g, %g of the oracle's with %g", one.Accept(), one.Coverage(), one.OracleAccept(), one.Oracle())
		case math.Abs(own.Accept()-own.Coverage()) > slack || math.Abs(own.OracleAccept()-own.Oracle()) > slack:
			t.Fatalf("the target's own drafts: acceptance %g, coverage %g; oracle %g, %g", own.Accept(), own.Coverage(), own.OracleAccept(), own.Oracle())
		case own.OracleAccept() < one.OracleAccept()-slack || own.OracleAccept() < own.Accept()-slack:
			t.Fatalf("the best list and drafter accept %g, others %g and %g", own.OracleAccept(), one.OracleAccept(), own.Accept())
		case math.Abs(all.Coverage()-1) > slack || all.Size() != float64(vocab) || all.rows != one.rows:
			t.Fatalf("all tokens: coverage %g of %g tokens", all.Coverage(), all.Size())
		}
	})
}

func narrow(p []float64) []float32 {
	n := make([]float32, len(p))
	for i, x := range p {
		n[i] = float32(x)
	}
	return n
}
