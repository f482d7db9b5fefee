// Package eval measures how well a model predicts text: bits per byte, perplexity, and how often its first choice is
// the next token.
//
//	docs, _, err := data.Source{Name: "text", Path: "alice.txt", Raw: true}.Documents()
//	r, err := eval.Run(ctx, m, docs, eval.Options{})
//
// The protocol: each document is scored on its own, after the token that begins a text (BOS if the model
// wants one, else end of text; with neither, the first token is not scored). It is read in windows of Context
// tokens. The first window scores all its tokens; each later one advances by Stride tokens and scores those,
// so that every token is scored once, and all except those of the first window have at least Context − Stride
// tokens before them. Control tokens that a template puts around the text are given, not scored.
//
// Bits per byte is the total of −log2 p divided by the bytes of the scored text, whatever the
// tokenizer: the one figure that compares models with different vocabularies.
package eval

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/tokenizer"
)

// Options specify how to measure. The zero value is the protocol above with windows of DefaultContext.
type Options struct {
	Context int   // tokens of a window; 0: DefaultContext, or the model's context if that is smaller
	Stride  int   // tokens by which windows advance, at most Context; 0: half of Context
	Limit   int64 // score about this many tokens, from the start of the documents; 0: all

	Progress func(done, total int64) // tokens scored; may be nil
}

// DefaultContext is the default length of a window.
const DefaultContext = 1024

// Result is the result of a measurement.
type Result struct {
	BitsPerByte float64 `json:"bits_per_byte"`
	Perplexity  float64 `json:"perplexity"` // per token
	Top1        float64 `json:"top1"`       // fraction of tokens that were the model's first choice
	Tokens      int64   `json:"tokens"`     // scored
	Bytes       int64   `json:"bytes"`      // of the scored text
	Documents   int     `json:"documents"`
	Context     int     `json:"context"`
	Stride      int     `json:"stride"`
	Nats        float64 `json:"nats"` // total of −ln p
}

// Fill sets missing options to defaults, and checks the others: errors begin with the field's name in grove eval.
func (o *Options) Fill(m *model.Model) error {
	if o.Context == 0 {
		o.Context = min(DefaultContext, m.Context())
	}
	if o.Context < 2 || o.Context > m.Context() {
		return fmt.Errorf("window %d: want 2 to the model's %d", o.Context, m.Context())
	}
	o.Stride = cmp.Or(o.Stride, o.Context/2)
	if o.Stride < 1 || o.Stride > o.Context {
		return fmt.Errorf("stride %d: want 1 to the window of %d", o.Stride, o.Context)
	}
	if o.Limit < 0 {
		return fmt.Errorf("limit %d: want 0 (all) or more", o.Limit)
	}
	return nil
}

// Run measures a model on documents.
func Run(ctx context.Context, m *model.Model, docs []data.Document, o Options) (Result, error) {
	if err := o.Fill(m); err != nil {
		return Result{}, err
	}
	if m.Tokenizer == nil {
		return Result{}, fmt.Errorf("the model has no tokenizer: text cannot be turned into its tokens")
	}
	r := Result{Context: o.Context, Stride: o.Stride}
	texts, err := r.encode(m.Tokenizer, docs, o.Limit)
	if err != nil {
		return Result{}, err
	}
	s := newScorer(m, texts, o)
	hits := int64(0)
	if err := s.run(ctx, func(text, at int, nats float64, hit bool) {
		r.Nats += nats
		if hit {
			hits++
		}
	}); err != nil {
		return Result{}, err
	}
	if r.Tokens == 0 || r.Bytes == 0 {
		return Result{}, fmt.Errorf("nothing to score: the text is shorter than two tokens")
	}
	r.BitsPerByte = r.Nats / math.Ln2 / float64(r.Bytes)
	r.Perplexity = math.Exp(r.Nats / float64(r.Tokens))
	r.Top1 = float64(hits) / float64(r.Tokens)
	return r, nil
}

// text is a document as tokens, including the one that begins it.
type text struct {
	ids    []int32
	scored []bool
}

// encode makes the documents' tokens and counts those that will be scored.
func (r *Result) encode(tok *tokenizer.Tokenizer, docs []data.Document, limit int64) ([]text, error) {
	begin := tok.EOS()
	if tok.AddBOS() {
		begin = tok.BOS()
	}
	var texts []text
	for i := range docs {
		if limit > 0 && r.Tokens >= limit {
			break
		}
		var t text
		if begin >= 0 {
			t.ids = append(t.ids, begin)
		}
		skip := len(t.ids) // the token that nothing predicts
		var err error
		if t.ids, err = data.Encode(t.ids, &docs[i], tok); err != nil {
			return nil, err
		}
		t.scored = make([]bool, len(t.ids))
		bytes, tokens := docs[i].Bytes(), 0
		for j := skip; j < len(t.ids); j++ {
			switch {
			case lower.TokenKind(tok, t.ids[j]) == tokenkind.Control:
			case j == 0:
				bytes -= len(tok.Piece(t.ids[0]))
			default:
				t.scored[j] = true
				tokens++
			}
		}
		if limit > 0 && r.Tokens+int64(tokens) > limit {
			bytes, tokens = t.cut(tok, int(limit-r.Tokens))
		}
		r.Bytes += int64(bytes)
		r.Tokens += int64(tokens)
		r.Documents++
		texts = append(texts, t)
	}
	return texts, nil
}

// cut ends a text after n scored tokens.
func (t *text) cut(tok *tokenizer.Tokenizer, n int) (bytes, tokens int) {
	for i, id := range t.ids {
		if !t.scored[i] {
			continue
		}
		if tokens == n {
			t.ids, t.scored = t.ids[:i], t.scored[:i]
			break
		}
		tokens++
		bytes += len(tok.Piece(id))
	}
	return bytes, tokens
}
