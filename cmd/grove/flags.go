package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
)

// sampleFlags are those of a request's Sampling.
type sampleFlags struct {
	Temperature       float32  `short:"t" help:"0 takes the likeliest token, 1 samples from the model's own distribution (${default})." default:"${temperature=0}" placeholder:"T" group:"Sampling"`
	TopK              int      `help:"Sample among the K likeliest tokens; 0 for all." default:"0" placeholder:"K" group:"Sampling"`
	TopP              float32  `help:"Sample among the fewest tokens whose probability reaches P (${default})." default:"${topp=1}" placeholder:"P" group:"Sampling"`
	MinP              float32  `help:"Sample among tokens at least P times as likely as the likeliest." default:"0" placeholder:"P" group:"Sampling"`
	RepetitionPenalty float32  `help:"Divide logits of tokens seen by this; 1 for none." default:"1" placeholder:"R" group:"Sampling"`
	PresencePenalty   float32  `help:"Take this from logits of tokens seen." default:"0" placeholder:"A" group:"Sampling"`
	FrequencyPenalty  float32  `help:"Take this from a token's logit each time it was seen." default:"0" placeholder:"A" group:"Sampling"`
	PenaltyLast       int      `help:"Penalties look back so many tokens; 0 for all." default:"0" placeholder:"N" group:"Sampling"`
	LogitBias         []string `help:"Add to the logits of tokens by id, -inf to ban: 42=-2.5,7=-inf." placeholder:"ID=BIAS" group:"Sampling"`
	Seed              uint64   `help:"Seed of the noise at temperatures above 0: the same seed gives the same text (${default})." default:"${seed=0}" placeholder:"N" group:"Sampling"`
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

	Drafter string `short:"d" help:"What proposes the trees: ${drafters}; plain decodes plainly. Options follow a colon: lookup:KEY=VALUE,... Without this flag: the first of eagle3, jetspec, specblock, ddtree and eagle2 that there is a head for, else best-first where there is a draft model; lookup where there is neither, and for grove's own model as it is." placeholder:"NAME" group:"Speculation"`
	Budget  int    `short:"b" help:"Nodes of a draft tree at most, root included; 0 for ${budget}. The controller takes fewer where they do not pay." default:"0" placeholder:"N" group:"Speculation"`
	Accept  string `help:"Rule by which drafted tokens are accepted: coupled, whose text is that of plain decoding, or rejection, that of the papers." enum:"coupled,rejection" default:"coupled" placeholder:"RULE" group:"Speculation"`

	Uncontrolled bool `help:"Speculate in every round with whole budgets, whether or not it pays." group:"Speculation"`

	Predict string `help:"A file whose text much of the output will repeat." placeholder:"FILE" group:"Speculation"`
}

func (f *generateFlags) request() (grove.Request, error) {
	r := grove.Request{MaxTokens: f.MaxTokens, Stop: f.Stop, IgnoreEnd: f.IgnoreEnd, Drafter: f.Drafter, Budget: f.Budget,
		Accept: f.Accept, Uncontrolled: f.Uncontrolled}
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
