package speculate

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Of all paths of a tree whose every token is probable enough the longest is taken, of equally long
// ones the likeliest.
func TestTypicalPath(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab = 6
		sampler, err := sample.New(sample.Params{Temperature: rapid.SampledFrom([]float32{0.5, 1, 2}).Draw(r, "temperature")}, vocab)
		if err != nil {
			r.Fatal(err)
		}
		s := &Sequence{tree: tree.New(0), sampler: sampler}
		var logits [][]float32
		for range rapid.IntRange(1, 25).Draw(r, "nodes") {
			logits = append(logits, rapid.SliceOfN(rapid.Float32Range(-3, 6), vocab, vocab).Draw(r, "logits"))
			s.tree.Append(rapid.IntRange(0, s.tree.Len()-1).Draw(r, "parent"), rapid.Int32Range(0, vocab-1).Draw(r, "token"), -1)
		}
		for len(logits) < s.tree.Len() {
			logits = append(logits, logits[0])
		}
		rule := &typical{probs: make([]float32, vocab), path: []int32{9, 9}}
		rule.plan(s, func(node int) []float32 { return logits[node] })

		var want []int32
		best := math.Inf(-1)
		for node := range s.tree.Len() {
			path := s.tree.Path(node, nil)
			likelihood := 0.0
			for i, n := range path[1:] {
				row, sum, entropy := logits[path[i]], 0.0, 0.0
				temperature := float64(s.sampler.Params().Temperature)
				for _, v := range row {
					sum += math.Exp(float64(v) / temperature)
				}
				for _, v := range row {
					p := math.Exp(float64(v)/temperature) / sum
					entropy -= p * math.Log(p+1e-5)
				}
				p := math.Exp(float64(row[s.tree.Token[n]])/temperature) / sum
				if p <= min(0.09, 0.3*math.Exp(-entropy)) {
					likelihood = math.Inf(-1)
				}
				likelihood += math.Log(p)
			}
			if worth := float64(len(path))*1e6 + likelihood; worth > best {
				best, want = worth, path[1:]
			}
		}
		if !slices.Equal(rule.path, want) {
			r.Fatalf("path %v of %v, want %v", rule.path, s.tree, want)
		}
		for _, node := range want {
			if token, err := rule.next(s, nil, []int32{0}); err != nil || token != s.tree.Token[node] {
				r.Fatalf("token %d, %v: want %d", token, err, s.tree.Token[node])
			}
		}
	})
}

// The rule changes the text, so that no request may ask for it.
func TestTypicalIsForMeasurements(t *testing.T) {
	l, err := New(newLaw(1), nil, Options{Accept: Typical})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Start([]int32{0}, Request{Accept: Typical, Sampling: sample.Params{Temperature: 1}}); err == nil {
		t.Error("a request has a rule that changes the text")
	}
}
