// The costs and gains of a grammar.

package bench

import (
	"context"
	"errors"
	"slices"

	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tokenizer"
)

// MaskCost compares texts that a JSON schema constrains with the same texts without a schema, which
// the target is made to write. There is one caller, without the engine.
type MaskCost struct {
	Drafter string  `json:"drafter"`
	Speed   float64 `json:"tokens_per_s_over_free"` // after the first token of each text
	Tau     float64 `json:"tau_over_free"`
}

// masks are the measurements of one drafter: first with the schema, then without.
type masks struct {
	loop    [2]*speculate.Loop
	target  [2]*forcedTarget
	request [2]speculate.Request

	speeds            []float64
	committed, rounds [2]int
}

// newMasks prepares the measurements of each drafter, or none without a schema.
func (o *ServeOptions) newMasks() (map[string]*masks, error) {
	if o.Schema == "" {
		return nil, nil
	}
	target := inside.Target(o.Model)
	t := target.Model.Tokenizer
	g, err := (&grammar.Source{JSONSchema: o.Schema}).Compile()
	if err != nil {
		return nil, err
	}
	schema := &grammar.Constraint{
		Grammar: g, Vocab: grammar.VocabOf(t, target.Vocab),
		Encode: func(text string) []int32 { return t.Encode(text, tokenizer.EncodeOptions{}) },
	}
	all := map[string]*masks{}
	for i := range o.Methods {
		m := &masks{}
		for k := range m.loop {
			m.target[k] = &forcedTarget{Target: speculate.Model(target.Model)}
			if m.loop[k], err = o.loop(m.target[k], &o.Methods[i]); err != nil {
				return nil, err
			}
			m.request[k] = speculate.Request{Sampling: o.Request.Sampling, MaxTokens: o.Request.MaxTokens}
		}
		m.request[0].Grammar, m.request[0].End = schema, t.IsEOG
		all[o.Methods[i].Name] = m
	}
	return all, nil
}

// measure decodes n prompts with the schema, and their texts again without.
func (m *masks) measure(ctx context.Context, prompts [][]int32, n int) error {
	if m == nil {
		return nil
	}
	var tokens, times [2]float64
	for p := range n {
		prompt := prompts[p%len(prompts)]
		m.target[1].text = nil
		for i, loop := range m.loop {
			r := m.request[i]
			if i == 1 {
				r.MaxTokens = len(m.target[1].text)
			}
			s, err := finish(ctx, loop, prompt, r)
			if err != nil {
				return err
			}
			stats := s.Stats()
			tokens[i], times[i] = tokens[i]+float64(len(s.Output())-1), times[i]+stats.Decode.Seconds()
			m.committed[i], m.rounds[i] = m.committed[i]+stats.Committed, m.rounds[i]+stats.Rounds
			m.target[1].from, m.target[1].text = len(prompt), slices.Clone(s.Output())
			s.Close()
		}
	}
	if tokens[0] == 0 {
		return errors.New("bench: the schema's texts have one token: want a schema that allows texts of --max-tokens")
	}
	m.speeds = append(m.speeds, tokens[0]/times[0]/(tokens[1]/times[1]))
	return nil
}

// cost returns the median over the measurements.
func (m *masks) cost(drafter string) MaskCost {
	tau := func(i int) float64 { return float64(m.committed[i]) / float64(max(m.rounds[i], 1)) }
	return MaskCost{drafter, median(m.speeds), tau(0) / tau(1)}
}
