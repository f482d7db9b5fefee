package textrank

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

const toyVocab = 40

// toyPass has, for a node, logits that follow from the last tokens of its path.
type toyPass struct {
	text []int32 // committed before the pass
	t    *tree.Tree
}

func (p *toyPass) Tap(_, _, _ int) []float32 { return nil }
func (p *toyPass) Logits(_, node int) []float32 {
	own := slices.Clone(p.text)
	for _, n := range p.t.Path(node, nil) {
		own = append(own, p.t.Token[n])
	}
	return toyLogits(own)
}

// toyLogits depend on the last three tokens, so the result kept at a node is repeated wherever
// these three agree.
func toyLogits(text []int32) []float32 {
	x := uint64(1)
	for _, token := range text[max(len(text)-3, 0):] {
		x = (x + uint64(token) + 1) * 0x9e3779b97f4a7c15
	}
	l := make([]float32, toyVocab)
	for i := range l {
		x = x*6364136223846793005 + 1442695040888963407
		l[i] = float32(x>>40) / (1 << 21)
	}
	return l
}

func toySampler(t interface{ Fatal(...any) }, temperature float32) *sample.Sampler {
	s, err := sample.New(sample.Params{Temperature: temperature, Seed: 3}, toyVocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// For random texts and trees, what is found for a node is what the target chooses there, provided
// that the tokens that decide agree. Nothing is found for what no tree had, and what the text has
// passed is forgotten.
func TestOffPathPredicts(t *testing.T) {
	found := 0
	rapid.Check(t, func(r *rapid.T) {
		s := toySampler(r, rapid.SampledFrom([]float32{0, 1}).Draw(r, "temperature"))
		token := rapid.Int32Range(0, 3)
		text := rapid.SliceOfN(token, 4, 6).Draw(r, "prompt")
		x := NewText(&sample.Params{}, NewModel(), nil)
		a := &x.offPath
		x.learn(text)
		if n := a.Learn(&draft.Rows{Tokens: text, Next: -1}, 0); n != 0 {
			r.Fatalf("a prompt has %d entries", n)
		}
		next := token.Draw(r, "first")
		for range rapid.IntRange(1, 6).Draw(r, "rounds") {
			root := next
			next = token.Draw(r, "next")
			tr := tree.New(root)
			for range rapid.IntRange(0, 12).Draw(r, "nodes") {
				tr.Append(rapid.IntRange(0, tr.Len()-1).Draw(r, "parent"), token.Draw(r, "token"), 0)
			}
			for node := range tr.Token {
				kept, agree := a.find(x.contextOf(tr, node), nil)
				if agree == 0 || agree == agreeAny {
					continue
				}
				own := slices.Clone(text)
				for _, n := range tr.Path(node, nil) {
					own = append(own, tr.Token[n])
				}
				if agree < contextMost {
					continue
				}
				found++
				if want := s.Sample(toyLogits(own), len(own), nil); kept[0].Token != want {
					r.Fatalf("after %v token %d was kept, the target chooses %d", own, kept[0].Token, want)
				}
			}
			// Accept any path.
			rows := draft.Rows{Tree: tr, Tokens: []int32{root}, Nodes: []int32{0}, Next: next, Pass: &toyPass{text, tr}}
			for node := 0; rapid.Bool().Draw(r, "further"); {
				kids := tr.Children(node, nil)
				if len(kids) == 0 {
					break
				}
				node = int(rapid.SampledFrom(kids).Draw(r, "child"))
				rows.Nodes, rows.Tokens = append(rows.Nodes, int32(node)), append(rows.Tokens, tr.Token[node])
			}
			before := len(text)
			text = append(text, rows.Tokens...)
			x.learn(rows.Tokens)
			fresh := a.Learn(&rows, before)
			for i := range fresh {
				a.Rank(i, &rows, s, toyVocab, nil)
			}
			for i, x := range a.entries {
				if x.position < len(text) {
					r.Fatalf("an entry of position %d is kept, the text has %d tokens", x.position, len(text))
				}
				if i >= len(a.entries)-fresh && x.position == len(text) && x.token[0] != rows.Next {
					r.Fatalf("what follows %d is ranked, the next token is %d", x.token[0], rows.Next)
				}
			}
		}
	})
	if found == 0 {
		t.Error("no entry was ever used")
	}
}

// The entry for a node makes its tokens candidates and, with weights that have learned to follow
// entries, its first one more probable. Without an entry nothing changes.
func TestOffPathRanks(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		s := toySampler(r, 1)
		text := []int32{1, 2, 3}
		p := sample.Params{Temperature: 1, Seed: 3}
		m := NewModel()
		for i := 1; i < agreeAny; i++ {
			m.sets[1].w[wOffPath+i] = 1.3
			m.sets[1].w[wOffPathFirst+i] = 2
			m.sets[1].w[wOffPathOther+i] = -2
		}
		x, plain := NewText(&p, m, nil), NewText(&p, m, nil)
		// The tree has two branches. The text takes the first, and the next tree continues with the end
		// of the second.
		tr := tree.New(4)
		first := tr.Append(0, 5, 0)
		node := tr.Append(0, 6, 0)
		agree := rapid.IntRange(0, 4).Draw(r, "agree")
		for i := range agree {
			node = tr.Append(node, int32(7+i), 0)
		}
		rows := draft.Rows{Tree: tr, Tokens: []int32{4, 5}, Nodes: []int32{0, int32(first)}, Next: 7,
			Pass: &toyPass{text, tr}}
		for _, x := range []*Text{x, plain} {
			x.learn(text)
			before := len(x.tokens)
			x.learn(rows.Tokens)
			if x == plain {
				continue
			}
			for i := range x.offPath.Learn(&rows, before) {
				x.offPath.Rank(i, &rows, s, toyVocab, nil)
			}
		}
		next := tree.New(7)
		at := 0
		for i := 1; i < agree; i++ {
			at = next.Append(at, int32(7+i), 0)
		}
		logits := toyLogits([]int32{9, rapid.Int32Range(0, 9).Draw(r, "other")})
		row := Row{Top: s.Top(make([]sample.Candidate, 0, 8), logits, 99, nil), Depth: 1, Output: flat}
		list := func(x *Text) []sample.Candidate {
			return x.Candidates(make([]sample.Candidate, 0, CandidatesMost), next, at, x.End(), &row, false,
				new(Scratch))
		}
		was, c := list(plain), list(x)
		kept, n := x.offPath.find(x.contextOf(next, at), make([]sample.Candidate, 0, 8))
		if want := min(agree, contextMost); agree > 0 && n != want {
			r.Fatalf("%d tokens agree, want %d", n, want)
		}
		if n == 0 {
			if !slices.Equal(was, c) {
				r.Fatalf("without an entry %v became %v", was, c)
			}
			return
		}
		probability := func(list []sample.Candidate, token int32) float64 {
			for _, c := range list {
				if c.Token == token {
					return math.Exp(float64(c.LogProb))
				}
			}
			return 0
		}
		for _, k := range kept {
			if probability(c, k.Token) == 0 {
				r.Fatalf("token %d of the entry is no candidate", k.Token)
			}
		}
		if before, after := probability(was, kept[0].Token), probability(c, kept[0].Token); before < .9 &&
			after <= before {
			r.Fatalf("the entry's first had %g and has %g", before, after)
		}
	})
}
