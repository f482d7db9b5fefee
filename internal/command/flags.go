package command

import (
	"strconv"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
)

// SampleFlags are the flags of a request's Sampling.
type SampleFlags struct {
	Temperature       float32  `short:"t" help:"Temperature, 0 to 100; 0 is greedy, 1 samples as the model says (${default})." default:"${temperature=0}" placeholder:"T" group:"Sampling"`
	TopK              int      `help:"Sample from the K most probable tokens; 0 means all." default:"0" placeholder:"K" group:"Sampling"`
	TopP              float32  `help:"Sample from the fewest tokens with total probability P; 0: all (${default})." default:"${topp=1}" placeholder:"P" group:"Sampling"`
	MinP              float32  `help:"Drop tokens less than P times as probable as the best, 0 to 1." default:"0" placeholder:"P" group:"Sampling"`
	RepetitionPenalty float32  `help:"Divide logits of tokens in the text by R, 0 to 100; 1 means none." default:"1" placeholder:"R" group:"Sampling"`
	PresencePenalty   float32  `help:"Subtract A from the logits of tokens in the output, -1000 to 1000." default:"0" placeholder:"A" group:"Sampling"`
	FrequencyPenalty  float32  `help:"Subtract A for each time a token is in the output, -1000 to 1000." default:"0" placeholder:"A" group:"Sampling"`
	PenaltyLast       int      `help:"Let all penalties count the last N tokens of the text." default:"0" placeholder:"N" group:"Sampling"`
	LogitBias         []string `help:"Add to logits by token id: 42=-2.5,7=-inf; -inf bans a token." placeholder:"ID=BIAS" group:"Sampling"`
	Seed              uint64   `help:"Sampling seed: the same seed gives the same text (${default})." default:"${seed=0}" placeholder:"N" group:"Sampling"`
}

func (f *SampleFlags) Sampling() (grove.Sampling, error) {
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
			return s, Usagef("--logit-bias %q: want ID=BIAS, a token id and the number to add, such as 42=-2.5", b)
		}
		if s.LogitBias == nil {
			s.LogitBias = map[int32]float32{}
		}
		s.LogitBias[int32(token)] = float32(value)
	}
	return s, nil
}

// GenerateFlags are the flags of a request.
type GenerateFlags struct {
	MaxTokens int      `short:"n" help:"Generate at most N tokens (${default}); 0 means until the context is full." default:"${maxtokens=256}" placeholder:"N"`
	Stop      []string `help:"Stop before this text; may be repeated." placeholder:"TEXT" sep:"none"`
	IgnoreEnd bool     `help:"Continue past the model's end-of-text token."`

	Grammar    string `help:"File with a GBNF grammar for the output." placeholder:"FILE" xor:"constraint" group:"Output"`
	JSONSchema string `name:"json-schema" help:"File with a JSON schema that the output must match." placeholder:"FILE" xor:"constraint" group:"Output"`
	Regex      string `help:"Regular expression that the whole output must match." placeholder:"REGEX" xor:"constraint" group:"Output"`

	SampleFlags

	Drafter string `short:"d" help:"Drafter that proposes the trees, such as eagle3+text; plain: none (see grove drafters)." default:"auto" placeholder:"NAME" group:"Speculation"`
	Budget  int    `short:"b" help:"Maximum nodes of a draft tree, 2 to 4096, root included; 0 means ${budget}." default:"0" placeholder:"N" group:"Speculation"`
	Accept  string `help:"Acceptance: coupled (the text of plain decoding) or rejection (as in papers)." enum:"coupled,rejection" default:"coupled" placeholder:"RULE" group:"Speculation"`

	Uncontrolled bool `help:"Draft and verify whole trees in every round, even when they do not pay off." group:"Speculation"`

	Predict string `help:"File with text that the output is expected to repeat." placeholder:"FILE" group:"Speculation"`
}

func (f *GenerateFlags) Request() (grove.Request, error) {
	r := grove.Request{MaxTokens: f.MaxTokens, Stop: f.Stop, IgnoreEnd: f.IgnoreEnd, Drafter: f.Drafter, Budget: f.Budget,
		Uncontrolled: f.Uncontrolled, Regex: f.Regex}
	inside.RequestOptionsOf(&r).Accept = f.Accept
	var err error
	if r.Sampling, err = f.Sampling(); err != nil {
		return r, err
	}
	for _, file := range []struct {
		flag, name string
		text       *string
	}{{"--predict", f.Predict, &r.Predict}, {"--grammar", f.Grammar, &r.Grammar},
		{"--json-schema", f.JSONSchema, &r.JSONSchema}} {
		if *file.text, err = ReadFlag(file.flag, file.name); err != nil {
			return r, err
		}
	}
	return r, nil
}
