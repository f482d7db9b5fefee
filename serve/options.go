package serve

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/tokenizer"
)

// options are the fields that all requests for text have, in every protocol: how the text is
// sampled, what it must match, how it is drafted and sent. They are also the internal form of these
// settings: a protocol that has other names for some assigns its own fields to them.
type options struct {
	Model         field[string]        `json:"model"`
	Stream        field[bool]          `json:"stream"`
	StreamOptions field[streamOptions] `json:"stream_options"`
	Stop          field[texts]         `json:"stop"`
	StopTokenIDs  field[[]int32]       `json:"stop_token_ids"` // vLLM's
	IgnoreEOS     bool                 `json:"ignore_eos"`
	Priority      field[int]           `json:"priority"`
	User          string               `json:"user"`

	Temperature       field[float32]   `json:"temperature"`
	TopP              field[float32]   `json:"top_p"`
	TopK              field[int]       `json:"top_k"`
	MinP              field[float32]   `json:"min_p"`
	RepetitionPenalty field[float32]   `json:"repetition_penalty"`
	RepeatPenalty     field[float32]   `json:"repeat_penalty"`
	PresencePenalty   field[float32]   `json:"presence_penalty"`
	FrequencyPenalty  field[float32]   `json:"frequency_penalty"`
	RepeatLastN       field[int]       `json:"repeat_last_n"`
	Seed              field[seed]      `json:"seed"`
	LogitBias         field[logitBias] `json:"logit_bias"`

	Drafter    field[string]     `json:"drafter"`
	Budget     field[int]        `json:"budget"`
	Prediction field[prediction] `json:"prediction"`
	Speculate  field[bool]       `json:"speculate"`
	Rounds     bool              `json:"rounds"`

	MaxCompletionTokens field[int] `json:"max_completion_tokens"`
	MaxTokens           field[int] `json:"max_tokens"`
	NPredict            field[int] `json:"n_predict"` // llama.cpp's name, on all of its endpoints
	MinTokens           field[int] `json:"min_tokens"`

	constraints
	notObeyed
}

type streamOptions struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"` // vLLM: each chunk has the usage so far
}

// prediction is text that the answer will mostly repeat.
type prediction struct {
	Type    field[string] `json:"type"`
	Content content       `json:"content"`
}

// notObeyed are fields that would change the output, and that this server does not support.
type notObeyed struct {
	Functions              refused `json:"functions" neutral:"[]"`
	FunctionCall           refused `json:"function_call" neutral:"\"none\" \"auto\""`
	Modalities             refused `json:"modalities" neutral:"[\"text\"] []"`
	Audio                  refused `json:"audio"`
	WebSearchOptions       refused `json:"web_search_options"`
	UseBeamSearch          refused `json:"use_beam_search" neutral:"false"`
	LengthPenalty          refused `json:"length_penalty" neutral:"1 1.0"`
	BadWords               refused `json:"bad_words" neutral:"[]"`
	IncludeStopStrInOutput refused `json:"include_stop_str_in_output" neutral:"false"`
	AllowedTokenIDs        refused `json:"allowed_token_ids"`
	LogitsProcessors       refused `json:"logits_processors" neutral:"[]"`
	PromptEmbeds           refused `json:"prompt_embeds"`
	Mirostat               refused `json:"mirostat" neutral:"0 0.0"`
	TypicalP               refused `json:"typical_p" neutral:"1 1.0"`
	XTCProbability         refused `json:"xtc_probability" neutral:"0 0.0"`
	DRYMultiplier          refused `json:"dry_multiplier" neutral:"0 0.0"`
	DynatempRange          refused `json:"dynatemp_range" neutral:"0 0.0"`
	TopNSigma              refused `json:"top_n_sigma" neutral:"-1 -1.0 0 0.0"`
	TFSZ                   refused `json:"tfs_z" neutral:"1 1.0"`
	TopA                   refused `json:"top_a" neutral:"0 0.0"`
	SmoothingFactor        refused `json:"smoothing_factor" neutral:"0 0.0"`
	EpsilonCutoff          refused `json:"epsilon_cutoff" neutral:"0 0.0"`
	EtaCutoff              refused `json:"eta_cutoff" neutral:"0 0.0"`
	NoRepeatNgramSize      refused `json:"no_repeat_ngram_size" neutral:"0"`
	ChatTemplate           refused `json:"chat_template" neutral:"\"\""`
	Documents              refused `json:"documents" neutral:"[]"`
	TruncatePromptTokens   refused `json:"truncate_prompt_tokens"`
	SkipSpecialTokens      refused `json:"skip_special_tokens" neutral:"true"`
	PromptLogprobs         refused `json:"prompt_logprobs"`
	LogprobTokenIDs        refused `json:"logprob_token_ids"`
	LoRA                   refused `json:"lora" neutral:"[]"`
	NCmpl                  refused `json:"n_cmpl" neutral:"1" why:"use n of /v1/completions or /v1/chat/completions"`
	NIndent                refused `json:"n_indent" neutral:"0"`
	AdaptiveTarget         refused `json:"adaptive_target" neutral:"-1 -1.0"`
	RepetitionDetection    refused `json:"repetition_detection"`
	ReturnAsTokenIDs       refused `json:"return_tokens_as_token_ids" neutral:"false"`
}

// several are the fields of protocols that can return several choices, and show their tokens.
type several struct {
	N        field[int]  `json:"n"`
	BestOf   field[int]  `json:"best_of"`
	Race     field[bool] `json:"race"`
	TokenIDs bool        `json:"return_token_ids"` // vLLM's and SGLang's
}

// oneChoice is part of the bodies of the other protocols.
type oneChoice struct {
	N        refused `json:"n" neutral:"1"`
	TokenIDs refused `json:"return_token_ids" neutral:"false" why:"use /v1/completions or /v1/chat/completions"`
}

// seed is any 64-bit integer, signed or unsigned.
type seed uint64

func (s *seed) readJSON(_ *decoder, path string, raw json.RawMessage) error {
	digits := string(wholeNumber(raw))
	if unsigned, err := strconv.ParseUint(digits, 10, 64); err == nil {
		*s = seed(unsigned)
		return nil
	}
	signed, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return fieldError(path, "want a whole number from %d to %d, not %s",
			int64(math.MinInt64), uint64(math.MaxUint64), described(raw))
	}
	*s = seed(signed)
	return nil
}

// randomSeed is -1, which asks for a random seed.
const randomSeed = seed(math.MaxUint64)

// sampling returns how tokens are sampled. The defaults are OpenAI's.
func (o *options) sampling(t *tokenizer.Tokenizer) (grove.Sampling, error) {
	s := grove.Sampling{
		Temperature:       o.Temperature.or(1),
		TopP:              o.TopP.value,
		TopK:              o.TopK.value,
		MinP:              o.MinP.value,
		RepetitionPenalty: o.repetition().value,
		PresencePenalty:   o.PresencePenalty.value,
		FrequencyPenalty:  o.FrequencyPenalty.value,
		PenaltyLast:       o.RepeatLastN.value,
		Seed:              uint64(o.Seed.or(randomSeed)),
	}
	if o.TopP.given && s.TopP == 0 {
		s.TopP = math.SmallestNonzeroFloat32 // for OpenAI this means the most probable token, for grove all tokens
	}
	if s.TopK == -1 {
		s.TopK = 0
	}
	switch {
	case s.PenaltyLast < -1:
		return s, o.RepeatLastN.fail("%d: want -1 (the whole text), 0 (none) or more", s.PenaltyLast)
	case s.PenaltyLast == -1:
		s.PenaltyLast = math.MaxInt
	case o.RepeatLastN.given && s.PenaltyLast == 0:
		s.RepetitionPenalty = 0
		s.PresencePenalty = 0
		s.FrequencyPenalty = 0
	}
	if s.Seed == uint64(randomSeed) {
		s.Seed = rand.Uint64()
	}
	var err error
	s.LogitBias, err = o.biases(t)
	return s, err
}

// repetition returns the field of the repetition penalty, which has two names.
func (o *options) repetition() *field[float32] {
	if !o.RepetitionPenalty.given && o.RepeatPenalty.given {
		return &o.RepeatPenalty
	}
	return &o.RepetitionPenalty
}

// pathOf returns the body's name for a field of grove.Request.
func (o *options) pathOf(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "Sampling."), "[")
	length := &o.MaxCompletionTokens
	if o.MaxTokens.given && !length.given {
		length = &o.MaxTokens
	}
	path, ok := map[string]string{
		"MaxTokens": length.path, "Stop": o.Stop.path, "Drafter": o.Drafter.path, "Budget": o.Budget.path,
		"Predict": o.Prediction.path, "PredictTokens": o.Prediction.path, "Temperature": o.Temperature.path,
		"TopK": o.TopK.path, "TopP": o.TopP.path, "MinP": o.MinP.path, "RepetitionPenalty": o.repetition().path,
		"PresencePenalty": o.PresencePenalty.path, "FrequencyPenalty": o.FrequencyPenalty.path,
		"PenaltyLast": o.RepeatLastN.path, "LogitBias": o.LogitBias.path, "Seed": o.Seed.path,
	}[name]
	if ok {
		return path
	}
	return name
}
