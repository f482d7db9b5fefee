package speculate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/internal/drafters/lookup"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

func genRequest(r *rapid.T, vocab int) Request {
	p := sample.Params{
		Temperature: rapid.SampledFrom([]float32{0, .7, 1}).Draw(r, "temperature"),
		TopK:        rapid.SampledFrom([]int{0, 0, 3, 200}).Draw(r, "top-k"),
		TopP:        rapid.SampledFrom([]float32{0, 0, .6, .95}).Draw(r, "top-p"),
		MinP:        rapid.SampledFrom([]float32{0, 0, .1}).Draw(r, "min-p"),
		Seed:        rapid.Uint64().Draw(r, "seed"),
	}
	if rapid.Bool().Draw(r, "penalties") {
		p.RepetitionPenalty = rapid.SampledFrom([]float32{0, 1.2, .9}).Draw(r, "repetition")
		p.PresencePenalty = rapid.SampledFrom([]float32{0, .5}).Draw(r, "presence")
		p.FrequencyPenalty = rapid.SampledFrom([]float32{0, .2}).Draw(r, "frequency")
		p.PenaltyLast = rapid.SampledFrom([]int{0, 1, 5}).Draw(r, "last")
		p.PenaltyFrom = rapid.SampledFrom([]int{0, 3, 20}).Draw(r, "from")
	}
	if rapid.Bool().Draw(r, "bias") {
		p.LogitBias = map[int32]float32{rapid.Int32Range(0, int32(vocab)-1).Draw(r, "token"): rapid.Float32Range(-2,
			2).Draw(r, "bias")}
	}
	q := Request{
		Sampling:  p,
		MaxTokens: rapid.SampledFrom([]int{0, 1, 2, 9, 30}).Draw(r, "max tokens"),
		Budget:    rapid.SampledFrom([]int{0, 1, 2, 3, 8, 20}).Draw(r, "budget"),
	}
	if rapid.IntRange(0, 2).Draw(r, "ends") == 0 {
		end := rapid.Int32Range(0, int32(vocab)-1).Draw(r, "end")
		q.End = func(token int32) bool { return token == end }
	}
	if rapid.IntRange(0, 2).Draw(r, "stops") == 0 {
		stop := rapid.Int32Range(0, int32(vocab)-1).Draw(r, "stop")
		q.Stop = func(token int32) bool { return token == stop }
	}
	q.Grammar = randomGrammar(r, vocab, q.End)
	return q
}

// Law 2: for every target, drafter, budget, sampling and batch the tokens are those of plain
// decoding, and cache, drafter and statistics agree with them at every step.
func TestSameTokens(t *testing.T) {
	for i := range 10 { // of 100 cases each
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, sameTokens)
		})
	}
}

// shared is a controller that all loops of a test use at the same time.
var shared = NewController()

func sameTokens(r *rapid.T) {
	target := &toy{
		vocab:   rapid.SampledFrom([]int{2, 5, 40, 150}).Draw(r, "vocab"),
		context: rapid.IntRange(12, 60).Draw(r, "context"),
		salt:    rapid.Uint64().Draw(r, "salt"),
		near:    rapid.SampledFrom([]float32{0, 1}).Draw(r, "near"),
		skip:    r.Skip,
	}
	n := rapid.IntRange(1, min(4, target.vocab)).Draw(r, "sequences")
	var prompts, want [][]int32
	var asks []Request
	truth := map[int32][]int32{}
	for i := range n {
		length := rapid.IntRange(1, target.context-1).Draw(r, "length")
		prompt := rapid.SliceOfN(rapid.Int32Range(0, int32(target.vocab)-1), length, length).Draw(r, "prompt")
		prompt[0] = int32(i)
		q := genRequest(r, target.vocab)
		out := plain(target, prompt, q)
		truth[prompt[0]] = append(slices.Clone(prompt), out...)
		prompts = append(prompts, prompt)
		want = append(want, out)
		asks = append(asks, q)
		if rapid.IntRange(0, 3).Draw(r, "predicts") == 0 {
			asks[i].Predicted = out
		}
	}
	var d draft.Drafter
	switch rapid.SampledFrom([]string{"none", "lookup", "hostile"}).Draw(r, "drafter") {
	case "lookup":
		var err error
		if d, err = registry.New("lookup:floor=0.001", registry.Target{}); err != nil {
			r.Fatal(err)
		}
	case "hostile":
		d = &hostile{r: r, t: target, output: truth, right: rapid.IntRange(0, 10).Draw(r, "right"),
			taps:    rapid.SampledFrom([][]int{nil, {3}, {0, 7, 2}}).Draw(r, "taps"),
			network: rapid.Bool().Draw(r, "network")}
	}
	o := Options{Budget: 6, Chunk: rapid.SampledFrom([]int{0, 1, 3, 7}).Draw(r, "chunk")}
	switch rapid.IntRange(0, 2).Draw(r, "control") {
	case 0:
		o.Uncontrolled = true
	case 1:
		o.Controller = shared // what it learned elsewhere is nonsense here
	}
	l, err := New(target, d, o)
	if err != nil {
		r.Fatal(err)
	}
	if rapid.Bool().Draw(r, "odd clock") { // arbitrary costs of everything; now and then time stands still
		at, rng := time.Unix(0, 0), rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "times"), 0))
		l.now = func() time.Time {
			at = at.Add(time.Duration(math.Exp(20*rng.Float64())) - 1)
			return at
		}
	}

	var all []*Sequence
	emitted := make([][]int32, n)
	tried := make([]int, n) // depths of rounds in which the accepted path reached a node's parent
	for i := range n {
		if rapid.Bool().Draw(r, "reuse") { // a cache in which another text left its rows
			c := &toyCache{rows: slices.Clone(prompts[i][:rapid.IntRange(0, len(prompts[i])).Draw(r, "rows")])}
			asks[i].Cache = c
		}
		s, err := l.Start(prompts[i], asks[i])
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, s)
	}
	for running := true; running; {
		var batch []*Sequence // any subset, in any order
		for _, s := range rapid.Permutation(all).Draw(r, "order") {
			if rapid.IntRange(0, 3).Draw(r, "in") > 0 {
				batch = append(batch, s)
			}
		}
		if rapid.IntRange(0, 9).Draw(r, "cancelled") == 0 {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := l.Step(ctx, batch); err != nil && !errors.Is(err, context.Canceled) {
				r.Fatal(err)
			}
		}
		if err := l.Step(context.Background(), batch); err != nil {
			r.Fatal(err)
		}
		for i, s := range all {
			if !slices.Contains(batch, s) {
				continue
			}
			emitted[i] = append(emitted[i], s.Fresh()...)
			c := s.Cache().(*toyCache)
			if text := s.Text(); len(s.Output()) > 0 && s.Finish() != Failed &&
				!slices.Equal(c.rows, text[:len(text)-1]) {
				r.Fatalf("the cache holds %v of %v", c.rows, text)
			}
			if tr, path := s.Round(); tr != nil && s.Finish() != Failed {
				if tr.Len() > max(s.r.Budget, 1) {
					r.Fatalf("%d nodes verified with a budget of %d", tr.Len(), s.r.Budget)
				}
				left := target.context - (len(s.Text()) - len(s.Fresh()))
				if m := asks[i].MaxTokens; m > 0 {
					left = min(left, m-(len(s.Output())-len(s.Fresh())))
				}
				if tr.MaxDepth() >= left {
					r.Fatalf("a tree of depth %d where %d tokens are left to emit", tr.MaxDepth(), left)
				}
				if tr.Len() > s.Budget() {
					r.Fatalf("%d nodes verified where the controller allowed %d", tr.Len(), s.Budget())
				}
				if len(path) != len(s.Fresh()) {
					r.Fatalf("path %v, emitted %v", path, s.Fresh())
				}
				for depth := 1; depth < len(path) || depth == len(path) && s.Finish() == Running; depth++ {
					if slices.ContainsFunc(tr.Parent[1:], func(node int32) bool {
						return int(tr.Depth[node]) == depth-1 && spells(tr, node, s.Fresh())
					}) {
						tried[i]++
					}
				}
			}
		}
		running = slices.ContainsFunc(all, func(s *Sequence) bool { return s.Finish() == Running })
	}
	var sum Stats
	for i, s := range all {
		if !slices.Equal(s.Output(), want[i]) || !slices.Equal(emitted[i], want[i]) {
			r.Fatalf("sequence %d: %v, in steps %v, want %v: %v", i, s.Output(), emitted[i], want[i], s.Err())
		}
		if s.Finish() == Failed { // the grammar allows none of the tokens
			if asks[i].Grammar == nil {
				r.Fatal(s.Err())
			}
			if any, _ := mask(asks[i], s.form.path.Place, make([]float32, target.vocab)); any {
				r.Fatal(s.Err())
			}
			sum.Add(s.Stats())
			s.Close()
			continue
		}
		last := want[i][len(want[i])-1]
		reason := Context
		switch q := asks[i]; {
		case q.End != nil && q.End(last):
			reason = End
		case q.Stop != nil && q.Stop(last):
			reason = Stop
		case s.form.path != nil && s.form.path.Complete():
			reason = Stop
		case len(want[i]) == q.MaxTokens:
			reason = Length
		}
		if s.Finish() != reason {
			r.Fatalf("finished by %q, want %q", s.Finish(), reason)
		}
		st := s.Stats()
		if st.Tokens != len(want[i]) || st.Committed != st.Tokens-1 || st.Accepted+st.Rounds != st.Committed ||
			st.Accepted > st.Drafted || st.Drafted > st.Proposed || st.Plain > st.Rounds || st.PathLength() > st.Tau() {
			r.Fatalf("%d tokens, statistics %+v", len(want[i]), st)
		}
		byDepth, triedByDepth := 0, 0
		for _, d := range st.Depths {
			byDepth += d.Accepted
			triedByDepth += d.Tried
			if d.Accepted > d.Tried || d.Tried > d.Offered {
				r.Fatalf("by depth %+v", st.Depths)
			}
		}
		if byDepth != st.Accepted || triedByDepth != tried[i] {
			r.Fatalf("accepted by depth %+v, in all %d; tried %d", st.Depths, st.Accepted, tried[i])
		}
		sum.Add(st)
		cache := s.Cache().(*toyCache)
		s.Close()
		s.Close()
		if cache.freed != (asks[i].Cache == nil) {
			r.Fatal("Close freed a cache of the caller's, or left its own")
		}
	}
	if got := l.Stats(); got.Tokens != sum.Tokens || got.Rounds != sum.Rounds || got.Accepted != sum.Accepted ||
		got.Prompt != sum.Prompt ||
		got.Plain != sum.Plain || got.Proposed != sum.Proposed {
		r.Fatalf("the loop counts %+v, its sequences %+v", got, sum)
	}
}

// A sequence under a grammar continues where an earlier one stopped, wherever that was.
func TestGrammarGoesOn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		target := &toy{vocab: 40, context: 60, salt: rapid.Uint64().Draw(r, "salt"), near: 1, skip: r.Skip}
		q := genRequest(r, target.vocab)
		q.Stop, q.MaxTokens = nil, 0
		out := plain(target, []int32{1, 2}, q)
		if q.Grammar == nil || len(out) < 2 {
			r.Skip()
		}
		q.Written = rapid.IntRange(1, len(out)-1).Draw(r, "written")
		l, err := New(target, nil, Options{})
		if err != nil {
			r.Fatal(err)
		}
		s, err := l.Start(append([]int32{1, 2}, out[:q.Written]...), q)
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		finish(r, l, s)
		if !slices.Equal(s.Output(), out[q.Written:]) {
			r.Fatalf("after %v: %v, want %v", out[:q.Written], s.Output(), out[q.Written:])
		}
	})
}

// An oracle's chain is accepted whole: tokens per pass are what the budget allows.
func TestOracleIsAccepted(t *testing.T) {
	target := &toy{vocab: 50, context: 500, salt: 3, near: 1}
	q := Request{MaxTokens: 101, Budget: 10, Sampling: sample.Params{Temperature: 1, Seed: 4}}
	prompt := []int32{1, 2, 3}
	out := plain(target, prompt, q)
	l, err := New(target, &oracle{text: append(slices.Clone(prompt), out...)}, Options{Uncontrolled: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Start(prompt, q)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	finish(t, l, s)
	if tau := s.Stats().Tau(); tau != 10 || !slices.Equal(s.Output(), out) {
		t.Errorf("τ = %g, want 10", tau)
	}
	if target.runs != 11 {
		t.Errorf("%d passes, want 1 for the prompt and 10 rounds", target.runs)
	}
}

type oracle struct {
	draft.Base
	text []int32
}

type oracleState struct{ at int }

func (*oracleState) Close() {}

func (o *oracle) Begin(draft.Options) (draft.State, error) { return &oracleState{}, nil }
func (o *oracle) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		r.State.(*oracleState).at += len(r.Tokens)
	}
	return nil
}
func (o *oracle) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, q := range requests {
		at, node := q.State.(*oracleState).at+1, 0
		for q.Tree.Len() < q.Budget && node < q.Depth && at+node < len(o.text) {
			node = q.Tree.Append(node, o.text[at+node], 0)
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

// A drafter's faults become errors that say what is wrong, and no tokens.
func TestFaultyDrafter(t *testing.T) {
	for want, d := range map[string]fault{
		"token 99":  func(q draft.Request) error { q.Tree.Append(0, 99, 0); return nil },
		"root":      func(q draft.Request) error { q.Tree.Token[0]++; return nil },
		"parent":    func(q draft.Request) error { q.Tree.Append(0, 1, 0); q.Tree.Parent[1] = 1; return nil },
		"broken":    func(draft.Request) error { return errors.New("broken") },
		"no nodes":  func(q draft.Request) error { q.Tree.ResetChain(nil); return nil },
		"Token, Pa": func(q draft.Request) error { q.Tree.Token = append(q.Tree.Token, 1); return nil },
	} {
		target := &toy{vocab: 10, context: 50, salt: 3}
		l, err := New(target, &faulty{fault: d}, Options{Uncontrolled: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Start([]int32{1, 2}, Request{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if err := l.Step(ctx, []*Sequence{s}); err != nil { // the prompt
			t.Fatal(err)
		}
		good, err := l.Start([]int32{1, 2}, Request{Budget: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Step(ctx, []*Sequence{s, good}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), want) || len(s.Output()) != 1 ||
			s.Finish() != Failed {
			t.Errorf("error %v, want one that says %q; emitted %v, finish %q", err, want, s.Output(), s.Finish())
		}
		if good.Err() != nil || len(good.Output()) != 2 {
			t.Errorf("%s: another sequence of the step emitted %v, error %v", want, good.Output(), good.Err())
		}
		s.Close()
		good.Close()
	}
}

type fault func(draft.Request) error

type faulty struct {
	draft.Base
	fault
}

func (f faulty) Begin(draft.Options) (draft.State, error) { return &oracleState{}, nil }
func (f faulty) Commit([]draft.Rows) error                { return nil }
func (f faulty) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	return make([]draft.Proposal, len(requests)), f.fault(requests[0])
}

func TestBadInput(t *testing.T) {
	target := &toy{vocab: 10, context: 8}
	for _, o := range []Options{{Budget: -1}, {Chunk: -1}, {Accept: "lossy"}} {
		if _, err := New(target, nil, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	l, err := New(target, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		prompt []int32
		r      Request
	}{
		"empty prompt":     {nil, Request{}},
		"prompt too long":  {make([]int32, 8), Request{}},
		"token too large":  {[]int32{1, 10}, Request{}},
		"negative token":   {[]int32{-1}, Request{}},
		"predicted token":  {[]int32{1}, Request{Predicted: []int32{77}}},
		"max tokens":       {[]int32{1}, Request{MaxTokens: -1}},
		"budget":           {[]int32{1}, Request{Budget: -2}},
		"sampling":         {[]int32{1}, Request{Sampling: sample.Params{TopP: 2}}},
		"bias beyond":      {[]int32{1}, Request{Sampling: sample.Params{LogitBias: map[int32]float32{10: 1}}}},
		"negative penalty": {[]int32{1}, Request{Sampling: sample.Params{RepetitionPenalty: -1}}},
	} {
		if _, err := l.Start(c.prompt, c.r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s, err := l.Start([]int32{1}, Request{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Step(context.Background(), []*Sequence{s, s}); err == nil {
		t.Error("a sequence was stepped twice in one pass")
	}
	s.Close()
	if err := l.Step(context.Background(), []*Sequence{s}); err == nil {
		t.Error("a closed sequence was stepped")
	}
}

// spells reports whether the path to a node, without the root, is the beginning of a text.
func spells(t *tree.Tree, node int32, text []int32) bool {
	for ; node > 0; node = t.Parent[node] {
		if t.Token[node] != text[t.Depth[node]-1] {
			return false
		}
	}
	return true
}
