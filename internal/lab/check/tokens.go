package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/lab/grammars"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

// Tokens checks law 2, same tokens: with the same prompt, options and seed, every drafter at every budget
// emits what plain decoding emits.
//
// A case is a random model, a few sequences with prompts, sampling options and some with grammars
// of their own, and drafters: lookup, one that knows the answer, one that goes beyond its budget, a
// hostile one, a draft model and heads of every kind with trees of random shapes, and a merge of
// two. Each sequence is decoded plainly and alone, at one kernel level; then all of them together,
// with each drafter, at another level and number of threads, some of them with texts of the past,
// while the weights of heads that can learn change under way, by the modifier +adapt too. By rejection, heads of every
// kind get the tokens that each sequence gets alone, and at temperature 0 those of plain decoding.
func Tokens(ctx context.Context, o Options) (Report, error) { return run(ctx, o, tokensCase) }

// script is a sequence to decode, and what came of it.
type script struct {
	prompt  []int32
	request speculate.Request
	want    []int32
	finish  speculate.Finish
}

func tokensCase(ctx context.Context, v *variant, rng *rand.Rand, tokens *int) error {
	vocab := v.shape.Vocab
	level := randomLevel(rng, 40)
	scripts := make([]script, 1+skewed(rng, 2, 8))
	for i := range scripts {
		scripts[i] = randomScript(rng, v)
		if err := scripts[i].decodePlainly(ctx, v, level); err != nil {
			return err
		}
	}
	for _, name := range randomHeads(rng, v) {
		if err := compareRejection(ctx, v, rng, scripts, name, level, tokens); err != nil {
			return err
		}
	}
	names := append(randomHeads(rng, v), "lookup", "oracle", "beyond", "hostile", randomModelDrafter(rng, vocab),
		randomMerge(rng, v))
	for _, name := range names {
		if err := compareTokens(ctx, v, rng, scripts, name, level, tokens); err != nil {
			return err
		}
	}
	return nil
}

// randomScript draws a prompt that repeats itself, as text does, and options.
func randomScript(rng *rand.Rand, v *variant) script {
	vocab := v.shape.Vocab
	words := 2 + rng.IntN(30)
	prompt := make([]int32, 1+textLength(rng, v, 150))
	for i := range prompt {
		prompt[i] = rng.Int32N(int32(words)) * int32(vocab/words)
	}
	s := script{prompt: prompt, request: speculate.Request{
		Sampling:  randomParams(rng, vocab),
		MaxTokens: 1 + rng.IntN(40),
		Budget:    2 + skewed(rng, 20, 80),
	}}
	if rng.IntN(3) == 0 { // a text that ends by itself
		end := rng.Int32N(int32(vocab))
		s.request.End = func(token int32) bool { return token%23 == end%23 }
	}
	if rng.IntN(3) == 0 {
		s.request.Grammar = randomGrammar(rng, vocab, s.request.End)
	}
	return s
}

// randomGrammar draws a grammar and texts of the tokens; nil where the grammar has no text. Tokens
// that end a text have none.
func randomGrammar(rng *rand.Rand, vocab int, end func(int32) bool) *grammar.Constraint {
	g, err := grammar.GBNF(grammars.Random(rng.IntN))
	if err != nil {
		return nil
	}
	pieces := grammars.Vocab(vocab, rng.IntN)
	first := map[string]int32{}
	for i, piece := range pieces {
		if end != nil && end(int32(i)) {
			pieces[i] = nil
		} else if _, known := first[string(piece)]; !known {
			first[string(piece)] = int32(i)
		}
	}
	return &grammar.Constraint{Grammar: g, Vocab: grammar.NewVocab(pieces), Encode: func(text string) (tokens []int32) {
		for len(text) > 0 { // the longest token that fits
			n := len(text)
			for n > 0 && first[text[:n]] == 0 {
				n--
			}
			if n == 0 {
				break
			}
			tokens, text = append(tokens, first[text[:n]]), text[n:]
		}
		return tokens
	}}
}

func randomParams(rng *rand.Rand, vocab int) sample.Params {
	p := sample.Params{Temperature: []float32{0, 0, 0.7, 1, 2}[rng.IntN(5)], Seed: rng.Uint64()}
	some := func(f func()) {
		if rng.IntN(3) == 0 {
			f()
		}
	}
	some(func() { p.TopK = 1 + rng.IntN(vocab) })
	some(func() { p.TopP = 0.05 + 0.9*rng.Float32() })
	some(func() { p.MinP = 0.3 * rng.Float32() })
	some(func() { p.RepetitionPenalty = 0.8 + rng.Float32() })
	some(func() { p.PresencePenalty = 2 * (rng.Float32() - 0.3) })
	some(func() { p.FrequencyPenalty = rng.Float32() - 0.3 })
	some(func() { p.PenaltyLast = 1 + rng.IntN(30) })
	some(func() {
		p.LogitBias = map[int32]float32{rng.Int32N(int32(vocab)): 10 * (rng.Float32() - 0.5), rng.Int32N(int32(vocab)): 3}
	})
	return p
}

// decodePlainly finds out what the sequence must come to.
func (s *script) decodePlainly(ctx context.Context, v *variant, level cpu.Level) error {
	defer cpu.Use(level)()
	o, err := v.threads(1)
	if err != nil {
		return err
	}
	loop, err := speculate.New(speculate.Model(o.m), nil, speculate.Options{})
	if err != nil {
		return err
	}
	seq, err := loop.Start(s.prompt, s.request)
	if err != nil {
		return err
	}
	defer seq.Close()
	for seq.Finish() == speculate.Running {
		if err := loop.Step(ctx, []*speculate.Sequence{seq}); err != nil {
			return err
		}
	}
	if seq.Finish() == speculate.Failed && s.request.Grammar != nil { // it allows none of the tokens, or is too ambiguous
		s.request.Grammar = nil
		return s.decodePlainly(ctx, v, level)
	}
	s.want = append(s.want[:0], seq.Output()...)
	s.finish = seq.Finish()
	return nil
}

// compareTokens decodes all scripts in one loop, some of them twice, the later ones starting while others are
// under way. Some take over the beginning of another's text: rows of the target, and what the drafter
// computed of them.
func compareTokens(ctx context.Context, v *variant, rng *rand.Rand, scripts []script, name string, plainLevel cpu.Level,
	tokens *int) (failed error) {
	level := randomLevel(rng, 40)
	defer cpu.Use(level)()
	o, err := v.threads(1 + rng.IntN(maxThreads))
	if err != nil {
		return err
	}
	for _, s := range scripts {
		if rng.IntN(3) == 0 {
			scripts = append(scripts, s)
		}
	}
	learning := &learners{rng: rng, vocab: v.shape.Vocab, o: o}
	d, err := drafter(ctx, name, rng, scripts, v, learning)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, learning.Close()) }()
	// A controller goes by the clock, so that a case without one is the surer to be run again as it was.
	loop, err := speculate.New(speculate.Model(o.m), d, speculate.Options{Chunk: 1 + rng.IntN(64),
		Uncontrolled: rng.IntN(4) > 0})
	if err != nil {
		return err
	}
	_, inOrder := d.(*teller) // its sequences are the scripts in their order, and no other may begin
	defer nn.UseStrips(rng.IntN(3) > 0)()
	var seqs []*speculate.Sequence
	var closers []interface{ Close() }
	defer func() {
		for _, c := range closers {
			c.Close()
		}
	}()
	memory, err := remember(scripts, v.shape.Vocab, rng)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, memory.Close()) }()
	for running := true; running; {
		if len(seqs) < len(scripts) && (len(seqs) == 0 || rng.IntN(3) == 0) {
			s := &scripts[len(seqs)]
			r := s.request
			if rng.IntN(2) == 0 { // some of the answer, and some of something else
				r.Predicted = append(r.Predicted, s.want[:rng.IntN(len(s.want)+1)]...)
				r.Predicted = append(r.Predicted, randomTokens(rng, v.shape.Vocab, rng.IntN(10))...)
			}
			if rng.IntN(2) == 0 {
				r.Memory = memory.Matches
			}
			if len(seqs) > 0 && rng.IntN(2) == 0 {
				from := seqs[rng.IntN(len(seqs))]
				cache := from.Cache().(*nn.Cache).Fork()
				defer cache.Free()
				same := cache.Reach(speculate.CommonPrefix(from.Text(), s.prompt))
				if err := cache.Truncate(same); err != nil {
					return err
				}
				r.Cache = cache
				if !inOrder && rng.IntN(2) == 0 {
					if r.Kept, err = from.Keep(); err != nil {
						return err
					}
					closers = append(closers, r.Kept)
				}
			}
			seq, err := loop.Start(s.prompt, r)
			if err != nil {
				return err
			}
			seqs, closers = append(seqs, seq), append(closers, seq)
		}
		if err := loop.Step(ctx, seqs); err != nil {
			return err
		}
		if err := swap(d, rng); err != nil {
			return err
		}
		running = len(seqs) < len(scripts)
		for _, s := range seqs {
			if err := s.Err(); err != nil {
				return err
			}
			running = running || s.Finish() == speculate.Running
		}
	}
	for i, seq := range seqs {
		s := &scripts[i]
		*tokens += len(seq.Output())
		where := fmt.Sprintf("%v, drafter %s, budget %d, %d threads at %v, %+v, sequence %d of %d", v, name, s.request.Budget,
			o.m.Threads(), level, s.request.Sampling, i, len(seqs))
		for t, token := range seq.Output() {
			if t >= len(s.want) || token != s.want[t] {
				return mismatchf("%s: token %d is %d; plain decoding at %v made it %v", where, t, token, plainLevel,
					s.want[min(t, len(s.want)):min(t+1, len(s.want))])
			}
		}
		if len(seq.Output()) != len(s.want) || seq.Finish() != s.finish {
			return mismatchf("%s: %d tokens, ended by %s; plain decoding at %v: %d tokens, ended by %s", where, len(seq.Output()),
				seq.Finish(), plainLevel, len(s.want), s.finish)
		}
	}
	return nil
}

// remember is a memory of texts like the scripts', with some of the tokens changed.
func remember(scripts []script, vocab int, rng *rand.Rand) (*textstore.Store, error) {
	m, err := textstore.Open("", 0)
	if err != nil {
		return nil, err
	}
	for range rng.IntN(4) {
		s := &scripts[rng.IntN(len(scripts))]
		text := slices.Concat(s.prompt, s.want)
		for i := range text {
			if rng.IntN(8) == 0 {
				text[i] = rng.Int32N(int32(vocab))
			}
		}
		if err := m.Add(nil, text); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, m.Wait()
}
