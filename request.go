package grove

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/speculate/badfield"
	"github.com/grovellm/grove/sample"
)

// Sampling says how tokens are chosen; its zero value is greedy decoding. See package sample.
type Sampling = sample.Params

// Request says what to generate.
type Request struct {
	MaxTokens int      // maximum tokens to generate; 0: until the context is full
	Stop      []string // strings to end before, at most 64 of up to 4096 bytes each; they may span tokens
	turnEnds  []string // additional ones, from the layout of a conversation
	hidden    []int32  // control tokens that the text leaves out

	Sampling Sampling // without PenaltyLast and PenaltyFrom, presence and frequency penalties count only the output

	// Drafter names the drafter that proposes trees. "auto" is the best that the model was opened with. Options
	// follow a colon, modifiers a plus: "lookup:min=3", "eagle3:tree=best-first+text"; see draft.Families. Empty or
	// "plain" decodes plainly. The text is the same with every drafter.
	Drafter string
	Budget  int // maximum nodes of a draft tree, root included; 0: a default

	// Uncontrolled speculates in every round, with the whole budget. Otherwise a controller, which learns from every
	// generation what passes cost and which drafts are accepted, verifies only as much of a tree as pays off, and
	// decodes plainly if nothing does.
	Uncontrolled bool

	// Predict is text that much of the output is expected to repeat, such as the file that is being edited.
	// Drafters that can use it do: as many tokens as the context has. PredictTokens is the same as tokens.
	Predict       string
	PredictTokens []int32

	// Grammar, JSONSchema and Regex, only one of which may be set, say what the whole output must
	// match: a grammar in GBNF as llama.cpp writes it, a JSON schema (draft 2020-12), or a regular
	// expression in Go's syntax. Tokens that cannot continue such a text get a logit of minus infinity
	// before sampling options apply. The model may end the text where it matches; if no longer text
	// can match, the generation ends with FinishStop. An output that MaxTokens or Stop cuts short need
	// not match. Drafters also propose text that the grammar forces; the output is the same with every
	// drafter. docs/serve.md says which schemas are refused.
	Grammar    string
	JSONSchema string
	Regex      string

	// Tools lets the output contain text and function calls; with JSONSchema or Regex, either calls or
	// matching text. Reasoning lets a constrained output begin with reasoning between the marks of the
	// model's chat template, or <think> and </think>; ReasoningOpen says that the prompt ends with the
	// opening mark. ReasoningBudget, if not 0, ends reasoning after that many output tokens, constrained or
	// not; below 0, at once. Stop strings apply after reasoning, unless StopInReasoning is set.
	Tools                    *Tools
	Reasoning, ReasoningOpen bool
	ReasoningBudget          int
	StopInReasoning          bool

	// Logprobs asks for the log-probability of every token, and of the TopLogprobs most probable tokens at its
	// position (0 to 20): logarithms of the softmax of the model's logits, before grammar, temperature, penalties and
	// biases. PromptLogprobs asks for those of the prompt's tokens too, and so computes the whole prompt again; with
	// MaxTokens 1 the prompt may fill the context.
	Logprobs       bool
	TopLogprobs    int
	PromptLogprobs bool

	// Requests with a higher Priority start first. Requests of one Tenant share prompt prefixes,
	// and tenants share the machine evenly. Of a tenant's requests, the one whose first token has
	// the earliest Deadline starts first; no request is ended at its deadline.
	Priority int
	Tenant   string
	Deadline time.Time
	session  string // name of the session, which replaces the tenant there

	IgnoreEnd bool // continue past the model's end-of-text token, for measurements

	more inside.RequestOptions
}

// Tools are functions that the model may call. A call's arguments match the function's schema.
type Tools struct {
	List     []Tool
	Form     *chat.CallForm // how the model writes calls: see chat.Layout.CallForm
	Required bool           // at least one call, and no text before it
	Single   bool           // at most one call
}

// Tool is a function that the model may call.
type Tool struct {
	Name       string
	Parameters string // JSON schema of its arguments; empty for any object
}

// maxTopLogprobs is the maximum of Request.TopLogprobs.
const maxTopLogprobs = 20

// maxBudget is far larger than any tree worth verifying.
const maxBudget = 4096

// maxStops bounds the number of stop strings of a request, and maxStop the length of each.
const (
	maxStops = 64
	maxStop  = 4096
)

// validate checks what can be checked without a model.
func (r *Request) validate() error {
	switch {
	case r.MaxTokens < 0:
		return optionf("MaxTokens", "%d: want 0 (until the context is full) or more", r.MaxTokens)
	case r.Budget != 0 && (r.Budget < 2 || r.Budget > maxBudget):
		return optionf("Budget", "%d: want 2 to %d nodes, or 0 for the default of %d", r.Budget, maxBudget,
			speculate.DefaultBudget)
	case r.more.Accept != "" && r.more.Accept != "coupled" && r.more.Accept != "rejection":
		return optionf("Accept", "%q: want coupled or rejection", r.more.Accept)
	case r.TopLogprobs < 0 || r.TopLogprobs > maxTopLogprobs:
		return optionf("TopLogprobs", "%d: want 0 to %d", r.TopLogprobs, maxTopLogprobs)
	case r.TopLogprobs > 0 && !r.Logprobs && !r.PromptLogprobs:
		return optionf("TopLogprobs", "%d: set Logprobs or PromptLogprobs too", r.TopLogprobs)
	case len(r.Stop) > maxStops:
		return optionf("Stop", "%d strings: want at most %d", len(r.Stop), maxStops)
	}
	for _, s := range r.Stop {
		switch {
		case s == "":
			return optionf("Stop", "an empty string would stop everywhere: leave it out")
		case len(s) > maxStop:
			return optionf("Stop", "a string of %d bytes: want at most %d", len(s), maxStop)
		case !utf8.ValidString(s):
			return optionf("Stop", "%q is not valid UTF-8, so no text can contain it", s)
		}
	}
	var wrong *badfield.Error
	if errors.As(r.Sampling.Validate(), &wrong) {
		return &OptionError{"Sampling." + wrong.Field, wrong.Reason}
	}
	return validText("Predict", r.Predict)
}

// validText returns an error that says where text is not UTF-8.
func validText(field, s string) error {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 {
			line := 1 + strings.Count(s[:i], "\n")
			return optionf(field, "invalid UTF-8 at byte %d (line %d, byte 0x%02x): convert the text to UTF-8 first", i, line, s[i])
		}
		i += n
	}
	return nil
}
