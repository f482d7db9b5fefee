package grove

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tokenizer"
)

// Chunk is the output of one round of a generation.
type Chunk struct {
	Text    string  // valid UTF-8; may lag behind the tokens while a character or a stop string may be incomplete
	Pieces  []Piece // Text in pieces, drafted or not
	Tokens  []int32 // the tokens of the round, including one that ends the text
	Drafted int     // how many of them, counted from the first, were drafted; the model chose the others itself

	Logprobs       []TokenLogprobs // of Tokens, where Request.Logprobs asked for them
	PromptLogprobs []TokenLogprobs // only in the first chunk: of the prompt's tokens, the first of which has 0

	Result *Result // the whole generation; only in the last chunk
}

// TokenLogprobs are the log-probabilities at one position of a text.
type TokenLogprobs struct {
	Logprob           // of the token itself
	Top     []Logprob // of the most probable tokens, the most probable first
}

// Logprob is a token's log-probability.
type Logprob struct {
	Token   int32
	Logprob float32
}

// Piece is a part of the text: drafted and accepted, or chosen by the model itself.
type Piece struct {
	Text    string
	Drafted bool
}

// Result is a finished generation.
type Result struct {
	Text   string
	Tokens []int32
	Finish Finish
	Stop   string // the stop string that ended the generation, if one did
	Stats  Stats

	all speculate.Stats
}

// Stats say what a generation cost and what speculation gained.
type Stats struct {
	Prompt int // tokens of the prompt
	Reused int // how many of them an earlier generation had computed
	Tokens int // generated tokens: one after the prompt, then those of the rounds

	Rounds   int // passes of the model after the prompt's
	Drafted  int // drafted tokens verified in those passes
	Accepted int // drafted tokens that the model accepted

	Prefill time.Duration // passes of the prompt
	First   time.Duration // from the start to the first token
	Decode  time.Duration // from the first token to the last
}

// Tau is τ, the mean number of tokens per pass; 1 in plain decoding.
func (s *Stats) Tau() float64 {
	if s.Rounds == 0 {
		return 0
	}
	return float64(s.Tokens-1) / float64(s.Rounds)
}

// Finish says why a generation ended: FinishEnd and so on.
type Finish = speculate.Finish

// The ends of a generation.
const (
	FinishEnd     = speculate.End     // the model's own end of text or of turn
	FinishStop    = speculate.Stop    // a stop string
	FinishLength  = speculate.Length  // MaxTokens
	FinishContext = speculate.Context // the context is full
)

var (
	errNoTokenizer = errors.New("the model's file has no tokenizer: use tokens instead of text, or a file that has one (a folder's tokenizer.json, a GGUF file's tokenizer.ggml keys)")
	errBusy        = errors.New("the session is already generating: wait until it ends, or use another session")
)

// Generate continues a prompt. It yields a chunk as each round completes, the last one with the Result; an
// error ends the sequence. Breaking out of the loop or ending ctx stops the generation. Each range over the
// returned sequence starts a new generation.
func (m *Model) Generate(ctx context.Context, prompt string, r Request) iter.Seq2[Chunk, error] {
	return m.generateText(ctx, prompt, r)
}

// GenerateTokens is Generate for a prompt of tokens. It needs no tokenizer; without one, it yields no text.
func (m *Model) GenerateTokens(ctx context.Context, prompt []int32, r Request) iter.Seq2[Chunk, error] {
	return m.generate(ctx, prompt, r)
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
	decoder *tokenizer.Decoder     // nil without a tokenizer
	hides   func(token int32) bool // whether the text leaves it out
	thought reasoned
	stopper stopper
	all     strings.Builder // the text let out: a prefix of the tokens' text
	given   int             // bytes of all that chunks have delivered
	least   int             // tokens that follow before a stop string counts

	sources []source // of text not yet delivered
	decoded int      // bytes of the tokens' text
	settled int      // number of sources known to be drafted or not
}

// source says where a stretch of text comes from: the text from the end of the previous source to end.
type source struct {
	end     int
	drafted bool
}

// push takes a token and reports whether the text ends with it.
func (o *output) push(token int32) (stopped bool) {
	if o.decoder == nil {
		return false
	}
	text := ""
	if !o.hides(token) {
		text = o.decoder.Push(token)
	}
	o.decoded += len(text)
	if o.least > 0 {
		o.least--
		o.stopper.after = o.decoded
	}
	o.sources = append(o.sources, source{end: o.decoded})
	return o.add(text)
}

func (o *output) add(text string) (stopped bool) {
	for again := true; again && !stopped; {
		var thought string
		thought, text, again = o.thought.push(text)
		o.all.WriteString(thought)
		text, stopped = o.stopper.push(text, o.all.Len())
		o.all.WriteString(text)
		text = ""
		if again && !stopped {
			o.all.WriteString(o.stopper.flush())
		}
	}
	return stopped
}

// take returns the text since the last take, whole and in pieces. drafted is how many of the tokens
// since then, counted from the first, were drafted.
func (o *output) take(drafted int) (text string, pieces []Piece) {
	for i := range o.sources[o.settled:] {
		o.sources[o.settled+i].drafted = i < drafted
	}
	text = o.all.String()[o.given:]
	add := func(end int, drafted bool) {
		if n := end - o.given; n > 0 {
			part := o.all.String()[o.given:end]
			if last := len(pieces) - 1; last >= 0 && pieces[last].Drafted == drafted {
				pieces[last].Text += part
			} else {
				pieces = append(pieces, Piece{part, drafted})
			}
			o.given = end
		}
	}
	kept := o.sources[:0]
	for _, s := range o.sources {
		add(min(s.end, o.all.Len()), s.drafted)
		if s.end > o.given {
			kept = append(kept, s)
		}
	}
	o.sources, o.settled = kept, len(kept)
	add(o.all.Len(), false) // text that a flush added
	return text, pieces
}

// flush releases the text held back, when no more tokens come: the beginning of a stop string, and,
// as U+FFFD, bytes that no token completed to a character. If the text was cut, their character may
// only lack its end, so it is left out. It reports whether that completed a stop string.
func (o *output) flush(cut bool) (stopped bool) {
	if o.decoder == nil {
		return false
	}
	return !cut && o.add(o.decoder.Flush()) || o.end()
}

// end adds the text held back because it could have become a mark or a stop string.
func (o *output) end() (stopped bool) {
	thought, text := o.thought.flush()
	o.all.WriteString(thought)
	text, stopped = o.stopper.push(text, o.all.Len())
	o.all.WriteString(text)
	if !stopped {
		o.all.WriteString(o.stopper.flush())
	}
	return stopped
}
