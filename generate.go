package grove

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/grovellm/grove/spec"
	"github.com/grovellm/grove/tokenizer"
	"github.com/grovellm/grove/tree"
)

// Chunk is what one round of a generation brought.
type Chunk struct {
	Text    string  // valid UTF-8; may lag behind the tokens while a character or a stop string could be under way
	Tokens  []int32 // the tokens of the round, a token that ends the text included
	Drafted int     // how many of them, from the first, were drafted; the others are the model's own

	Result *Result // how it all went, in the last chunk alone
}

// Result is a finished generation.
type Result struct {
	Text   string
	Tokens []int32
	Finish Finish
	Stop   string // the stop string that ended it, if one did
	Stats  Stats
}

// Stats say what a generation cost and what speculation brought; see package spec.
type Stats = spec.Stats

// Finish says why a generation ended: FinishEnd and so on.
type Finish = spec.Finish

// The ends of a generation.
const (
	FinishEnd     = spec.End     // the model's own end of text or of turn
	FinishStop    = spec.Stop    // a stop string
	FinishLength  = spec.Length  // MaxTokens
	FinishContext = spec.Context // the context is full
)

// Round is one round of speculation.
type Round struct {
	Tree *tree.Tree // what was verified, the last committed token at its root; used again for the next round
	Path []int32    // its nodes that were accepted, the root first
	Next int32      // the token after the path: the bonus token, or the last of the text
}

var (
	errNoTokenizer = errors.New("the model's file has no tokenizer: use tokens in place of text, or a file that has one (a folder's tokenizer.json, a GGUF file's tokenizer.ggml keys)")
	errBusy        = errors.New("the session is generating already: one at a time, or use another session")
)

// Generate continues a prompt. It yields a chunk for each round as it comes, the last one with the Result; an
// error ends it. Breaking out of the loop, or ending ctx, stops the work. Each range over what
// Generate returns generates anew.
func (m *Model) Generate(ctx context.Context, prompt string, r Request) iter.Seq2[Chunk, error] {
	return m.NewSession().generateText(ctx, prompt, r, true)
}

// GenerateTokens is Generate for a prompt of tokens. It needs no tokenizer, and without one yields no text.
func (m *Model) GenerateTokens(ctx context.Context, prompt []int32, r Request) iter.Seq2[Chunk, error] {
	return m.NewSession().generate(ctx, prompt, r, true)
}

// Collect runs a generation to its end.
func Collect(chunks iter.Seq2[Chunk, error]) (*Result, error) {
	for c, err := range chunks {
		if err != nil {
			return nil, err
		}
		if c.Result != nil {
			return c.Result, nil
		}
	}
	return nil, errors.New("the generation ended without a result")
}

// output turns tokens into text as they are emitted.
type output struct {
	decoder *tokenizer.Decoder // nil without a tokenizer
	stopper stopper
	all     strings.Builder
	given   int // bytes of all that chunks have had
}

// push takes a token and reports whether the text ends with it.
func (o *output) push(token int32) (stopped bool) {
	if o.decoder == nil {
		return false
	}
	return o.add(o.decoder.Push(token))
}

func (o *output) add(text string) (stopped bool) {
	text, stopped = o.stopper.push(text)
	o.all.WriteString(text)
	return stopped
}

// take returns the text since the last take.
func (o *output) take() string {
	s := o.all.String()[o.given:]
	o.given += len(s)
	return s
}

// flush lets go of what was held back, when no more tokens come. It reports whether that completed a stop string.
func (o *output) flush() (stopped bool) {
	if o.decoder == nil {
		return false
	}
	if o.add(o.decoder.Flush()) {
		return true
	}
	o.all.WriteString(o.stopper.flush())
	return false
}
