package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/speculate/walk"
	"github.com/grovellm/grove/tree"
)

// The results of judge equal those of its definition, node by node.
func TestJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const vocab = 6
		tr := tree.New(0)
		for range rapid.IntRange(0, 30).Draw(t, "nodes") {
			tr.Append(rapid.IntRange(0, tr.Len()-1).Draw(t, "parent"), rapid.Int32Range(0, vocab-1).Draw(t, "token"),
				rapid.Float32Range(-9, 0).Draw(t, "logprob"))
		}
		rows := make([][]float32, tr.Len())
		for i := range rows {
			rows[i] = rapid.SliceOfN(rapid.Float32Range(-30, 30), vocab, vocab).Draw(t, "logits")
		}
		j := judge(tr, func(node int) []float32 { return rows[node] })

		logProb := func(node int) float64 { // of a node given its parent
			row, sum := rows[tr.Parent[node]], 0.0
			for _, x := range row {
				sum += math.Exp(float64(x) - float64(row[tr.Token[node]]))
			}
			return -math.Log(sum)
		}
		var leaves []branch
		for i := 1; i < tr.Len(); i++ {
			if slices.Contains(tr.Parent, int32(i)) {
				continue
			}
			var b branch
			for _, k := range tr.Path(i, nil)[1:] {
				b.Draft += float64(tr.LogProb[k])
				b.Target += logProb(int(k))
			}
			leaves = append(leaves, b)
		}
		if len(j.ranks) != min(len(leaves), branches) {
			t.Fatalf("%d branches of %d leaves", len(j.ranks), len(leaves))
		}
		slices.SortFunc(leaves, func(a, b branch) int { return int(math.Copysign(1, b.Draft-a.Draft)) })
		for i, b := range j.ranks {
			near := func(a, b float64) bool { return math.Abs(a-b) < 1e-4*(1+math.Abs(a)) }
			if !near(b.Draft, leaves[i].Draft) || !slices.ContainsFunc(leaves, func(o branch) bool {
				return near(o.Draft, b.Draft) && near(o.Target, b.Target)
			}) {
				t.Fatalf("rank %d is %+v; leaves %+v", i+1, b, leaves)
			}
		}
		node := 0
		for i, b := range j.best {
			last := -1
			for c := 1; c < tr.Len(); c++ {
				if int(tr.Parent[c]) == node && (last < 0 || tr.LogProb[c] > tr.LogProb[last]) {
					last = c
				}
			}
			node = last
			if len(b.Tokens) != i+1 || b.Tokens[i] != tr.Token[node] {
				t.Fatalf("the likeliest path goes by %v at depth %d, not by node %d of %v", b.Tokens, i+1, node, tr)
			}
		}
		if slices.Contains(tr.Parent, int32(node)) {
			t.Fatalf("the likeliest path ends at node %d, which has children", node)
		}
		var w walk.Walk
		accepted := 1
		for w.Start(tr); w.Follow(argmax(rows[w.Node()])); accepted++ {
		}
		if j.accepted != accepted {
			t.Fatalf("%d tokens accepted, want %d", j.accepted, accepted)
		}
	})
}

// A draft model that is the target predicts the target exactly: gaps are 0 and all of a chain is
// accepted. All drafters are examined at the same places, whatever they tap.
func TestFaithful(t *testing.T) {
	target := tinyPair(t)
	random := target.Draft
	target.Draft = target.Model
	if random == nil {
		t.Fatal("there is no draft model")
	}
	run := SpecRun{tinySuite("s", 2), methods(t, "plain,linear:k=4@name=itself,fixed:d=2,b=2@name=tree,jetspec@budget=20@name=causal,ddtree@budget=20@name=both")}
	places := 0
	r, err := Faithful(context.Background(), FaithfulOptions{Target: target, Runs: []SpecRun{run}, MaxTokens: 40, Every: 5,
		Progress: func(SpecProgress) { places++ }})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Suites[0]
	if len(r.Suites) != 1 || len(s.Methods) != 4 || s.Prompts != 2 || places != 2 || s.Places < 2 {
		t.Fatalf("%+v", r)
	}
	for _, m := range s.Methods {
		sum := 0.0
		for _, x := range m.Shares {
			sum += x
		}
		if m.Ranks[0].Places != s.Places || math.Abs(sum-1) > 1e-9 || m.Accepted < 1 || m.Exceeds < 0 || m.Exceeds > 1 {
			t.Errorf("%+v", m)
		}
		if own := m.Name == "itself" || m.Name == "tree"; own != (math.Abs(m.MeanGap) < 1e-3) || own && m.Shares[0] != 1 {
			t.Errorf("%s: a mean gap of %g, shares %v", m.Name, m.MeanGap, m.Shares)
		}
	}
	if m := s.Methods[0]; m.Accepted != 5 || m.Ranks[0].Tokens != 4 || len(m.Ranks) != 1 || len(m.Depths) != 4 ||
		m.Depths[3].Draft > m.Depths[0].Draft {
		t.Errorf("the target as its own draft model: %+v", m)
	}
	if s.Example == nil || len(s.Example.Methods) != 4 || len(s.Example.Methods[3].Branches) == 0 {
		t.Errorf("example %+v", s.Example)
	}

	dir := t.TempDir()
	files, err := r.Save(dir)
	if err != nil || len(files) != 6 {
		t.Errorf("files %v, %v", files, err)
	}
	var back FaithfulReport
	if b, err := json.Marshal(r); err != nil || json.Unmarshal(b, &back) != nil ||
		back.Suites[0].Methods[3].MeanGap != s.Methods[3].MeanGap {
		t.Errorf("not the report again: %v", err)
	}
	var text bytes.Buffer
	if err := r.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(faithful)", "(extreme)", "larger than itself's", "| both | 5 |", "differ most"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
}

func TestFaithfulRefuses(t *testing.T) {
	target := tinyPair(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		o    FaithfulOptions
		want string
	}{
		"no target": {context.Background(), FaithfulOptions{}, "no target"},
		"no drafter": {context.Background(), FaithfulOptions{Target: target,
			Runs: []SpecRun{{tinySuite("s", 1), methods(t, "plain")}}}, "no drafter"},
		"no family": {context.Background(), FaithfulOptions{Target: target,
			Runs: []SpecRun{{tinySuite("s", 1), methods(t, "nothing")}}}, `no "nothing"`},
		"cancelled": {ctx, FaithfulOptions{Target: target, Runs: []SpecRun{{tinySuite("s", 1), methods(t, "jetspec")}}},
			"canceled"},
	} {
		if _, err := Faithful(c.ctx, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", name, err, c.want)
		}
	}
}
