package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/cpu"
)

// modelFlags name a model.
type modelFlags struct {
	Model   string `short:"m" env:"GROVE_MODEL" help:"A GGUF file or a Hugging Face folder." placeholder:"FILE"`
	Context int    `help:"Most tokens of prompt and answer; 0 for what the model was made for." default:"0" placeholder:"N"`
}

// open loads the model, showing how far it is.
func (f *modelFlags) open(p *program) (*grove.Model, error) { return f.openWith(p, "") }

// openWith is open with a chat template in place of the model's own, if it is not empty.
func (f *modelFlags) openWith(p *program, template string) (*grove.Model, error) {
	if f.Model == "" {
		return nil, usagef("which model? Name a GGUF file or Hugging Face folder with --model or in GROVE_MODEL (grove synth writes one to try)")
	}
	if f.Context < 0 {
		return nil, usagef("--context %d: want 0 (what the model was made for) or more", f.Context)
	}
	bar := p.progress("loading", true)
	defer bar.end()
	m, err := grove.Open(f.Model, grove.Options{Threads: p.Threads, Context: f.Context, ChatTemplate: template, Progress: bar.set})
	if err != nil {
		return nil, err
	}
	bar.end()
	p.logf("%s: %s, %d layers, vocabulary %d, context %d, %s of weights, %d threads, kernels %s",
		f.Model, m.Config().Arch, m.Config().Layers, m.Config().Vocab, m.Context(), size(int64(m.WeightBytes())), m.Threads(), cpu.Active())
	if t := m.Tokenizer(); t != nil {
		for _, note := range t.Notes() {
			p.logf("%s", note)
		}
	}
	return m, nil
}

// sampleFlags are those of a request's Sampling.
type sampleFlags struct {
	Temperature       float32  `short:"t" help:"0 takes the likeliest token, 1 samples from the model's own distribution (${default})." default:"${temperature=0}" placeholder:"T" group:"Sampling"`
	TopK              int      `help:"Sample among the K likeliest tokens; 0 for all." default:"0" placeholder:"K" group:"Sampling"`
	TopP              float32  `help:"Sample among the fewest tokens whose probability reaches P." default:"1" placeholder:"P" group:"Sampling"`
	MinP              float32  `help:"Sample among tokens at least P times as likely as the likeliest." default:"0" placeholder:"P" group:"Sampling"`
	RepetitionPenalty float32  `help:"Divide logits of tokens seen by this; 1 for none." default:"1" placeholder:"R" group:"Sampling"`
	PresencePenalty   float32  `help:"Take this from logits of tokens seen." default:"0" placeholder:"A" group:"Sampling"`
	FrequencyPenalty  float32  `help:"Take this from a token's logit each time it was seen." default:"0" placeholder:"A" group:"Sampling"`
	PenaltyLast       int      `help:"Penalties look back so many tokens; 0 for all." default:"0" placeholder:"N" group:"Sampling"`
	LogitBias         []string `help:"Add to the logits of tokens by id, -inf to ban: 42=-2.5,7=-inf." placeholder:"ID=BIAS" group:"Sampling"`
	Seed              uint64   `help:"Seed of the noise at temperatures above 0: the same seed gives the same text." default:"0" placeholder:"N" group:"Sampling"`
}

func (f *sampleFlags) sampling() (grove.Sampling, error) {
	s := grove.Sampling{
		Temperature: f.Temperature, TopK: f.TopK, TopP: f.TopP, MinP: f.MinP,
		RepetitionPenalty: f.RepetitionPenalty, PresencePenalty: f.PresencePenalty, FrequencyPenalty: f.FrequencyPenalty,
		PenaltyLast: f.PenaltyLast, Seed: f.Seed,
	}
	for _, b := range f.LogitBias {
		id, bias, ok := strings.Cut(b, "=")
		token, err := strconv.ParseInt(strings.TrimSpace(id), 10, 32)
		value, err2 := strconv.ParseFloat(strings.TrimSpace(bias), 32)
		if !ok || err != nil || err2 != nil || token < 0 {
			return s, usagef("--logit-bias %q: want ID=BIAS, a token's number and what to add, as 42=-2.5", b)
		}
		if s.LogitBias == nil {
			s.LogitBias = map[int32]float32{}
		}
		s.LogitBias[int32(token)] = float32(value)
	}
	return s, nil
}

// generateFlags are those of a request.
type generateFlags struct {
	MaxTokens int      `short:"n" help:"Generate at most N tokens (${default}); 0 until the context is full." default:"${maxtokens=256}" placeholder:"N"`
	Stop      []string `help:"End before this text; may be given several times." placeholder:"TEXT" sep:"none"`
	IgnoreEnd bool     `help:"Go on after the model's end-of-text token."`

	sampleFlags

	Drafter string `short:"d" help:"What proposes the trees: ${drafters}; none decodes plainly. Options follow a colon: lookup:KEY=VALUE,..." default:"lookup" group:"Speculation"`
	Budget  int    `short:"b" help:"Nodes of a draft tree at most; 0 for ${budget}." default:"0" placeholder:"N" group:"Speculation"`
	Predict string `help:"A file whose text much of the output will repeat." placeholder:"FILE" group:"Speculation"`
}

func (f *generateFlags) request() (grove.Request, error) {
	r := grove.Request{MaxTokens: f.MaxTokens, Stop: f.Stop, IgnoreEnd: f.IgnoreEnd, Drafter: f.Drafter, Budget: f.Budget}
	var err error
	if r.Sampling, err = f.sampling(); err != nil {
		return r, err
	}
	if f.Predict != "" {
		if r.Predict, err = readText(f.Predict); err != nil {
			return r, fmt.Errorf("--predict: %w", err)
		}
	}
	return r, nil
}

// drafterNames lists the drafters there are.
func drafterNames() string {
	var names []string
	for _, f := range draft.Families() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}
