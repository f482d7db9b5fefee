package serve

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tokenizer"
)

// logprob holds the log-probabilities at one position of a choice.
type logprob struct {
	grove.TokenLogprobs
	first  bool // the first token has no log-probability
	offset int  // characters of the choice's text before it
	end    int  // and with it
}

// logprobs follows a choice's text, to know where its tokens begin. The zero value is for calls
// that ask for no log-probabilities.
type logprobs struct {
	call   *call
	decode func(token int32) string // nil without a tokenizer
	offset int
	prompt string // the rest, after offset, of a prompt that the text begins with
}

func newLogprobs(c *call, prompt string) logprobs {
	if !c.request.Logprobs {
		return logprobs{}
	}
	l := logprobs{call: c}
	if c.echo {
		l.prompt = prompt
	}
	if c.model.Tokenizer() != nil {
		l.decode = c.newDecoder(!c.echo)
	}
	return l
}

// newDecoder returns a function that turns the tokens of a choice, one by one, into its text. continues says that no
// prompt begins it.
func (c *call) newDecoder(continues bool) func(token int32) string {
	d := c.model.Tokenizer().NewDecoder(tokenizer.DecodeOptions{Continue: continues, Special: true})
	hides := inside.Hides(c.model, &c.request)
	return func(token int32) string {
		if hides(token) {
			return ""
		}
		return d.Push(token)
	}
}

// take lists the log-probabilities that a chunk adds, except those of the model's end-of-text token.
func (l *logprobs) take(chunk *grove.Chunk) (list []logprob) {
	if l.call == nil {
		return nil
	}
	for i, p := range chunk.PromptLogprobs {
		list = append(list, l.at(p, i == 0))
	}
	if l.call.none {
		return list
	}
	tokens := chunk.Logprobs
	if r := chunk.Result; r != nil && r.Finish == grove.FinishEnd && len(tokens) > 0 {
		tokens = tokens[:len(tokens)-1]
	}
	for _, p := range tokens {
		list = append(list, l.at(p, false))
	}
	return list
}

func (l *logprobs) at(p grove.TokenLogprobs, first bool) logprob {
	at := logprob{p, first, l.offset, l.offset}
	if l.decode == nil {
		return at
	}
	text := l.decode(p.Token)
	t, bare := l.call.model.Tokenizer(), strings.TrimPrefix(text, " ")
	switch name := t.Text(p.Token); {
	case l.prompt == "":
	case t.IsSpecial(p.Token) && strings.HasPrefix(l.prompt, name): // the prompt contains its name
		text = name
	case !strings.HasPrefix(l.prompt, text) && strings.HasPrefix(l.prompt, bare): // the tokenizer added the space
		text = bare
	}
	l.offset += utf8.RuneCountInString(text)
	l.prompt = strings.TrimPrefix(l.prompt, text)
	at.end = l.offset
	return at
}

// piece returns the bytes of a token's text, or the name of a special token, which has no text.
func (m *Model) piece(token int32) string {
	t := m.Tokenizer()
	if t == nil {
		return ""
	}
	if t.IsSpecial(token) {
		return t.Text(token)
	}
	return t.Piece(token)
}

// tokenName returns a token as text completions show it. Incomplete characters are written as bytes.
func (m *Model) tokenName(token int32) string {
	piece := m.piece(token)
	if utf8.ValidString(piece) {
		return piece
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range []byte(piece) {
		b.WriteString(`\x` + string(hex[c>>4]) + string(hex[c&15]))
	}
	return b.String()
}

// leastLogprob stands for minus infinity, which JSON cannot express.
const leastLogprob = -9999

func finite(x float32) float32 {
	if !(x > leastLogprob) || math.IsInf(float64(x), 0) {
		return leastLogprob
	}
	return x
}
