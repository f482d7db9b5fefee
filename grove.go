package grove

import (
	"errors"
	"sync"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/draft/lookup" // the drafter that needs no model
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tokenizer"
)

// Options say how to open a model.
type Options struct {
	Threads int // workers of a pass; 0: as many as the program may use (GOMAXPROCS)
	Context int // most tokens of prompt and output together; 0: what the model was made for

	ChatTemplate string // a Jinja template for Chat, in place of the one in the model's files

	Progress func(done, total int64) // called as weights load, in bytes; may be nil
}

// maxThreads is far beyond what a pass can use.
const maxThreads = 1024

// Model is an open model. Any number of goroutines may generate with it at the same time: weights
// are shared, each generation has a cache and memory of its own, and their passes take turns
// on the model's workers. Close it after the last of them has ended.
type Model struct {
	m      *model.Model
	layout func() (*chat.Layout, error) // made when first asked for
}

// Open loads the model at path: a GGUF file (the first part of a split one) or a Hugging Face folder.
func Open(path string, o Options) (*Model, error) {
	if o.Threads < 0 || o.Threads > maxThreads {
		return nil, optionf("Threads", "%d: want 0 (one for each processor) to %d", o.Threads, maxThreads)
	}
	if o.Context < 0 {
		return nil, optionf("Context", "%d: want 0 (what the model was made for) or more", o.Context)
	}
	m, err := model.Open(path, model.Options{Threads: o.Threads, Context: o.Context, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	g := New(m)
	if o.ChatTemplate != "" {
		layout, err := g.parseTemplate(o.ChatTemplate)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.layout = func() (*chat.Layout, error) { return layout, nil }
	}
	return g, nil
}

// New makes a Model of one opened with package model. Closing it closes m.
func New(m *model.Model) *Model {
	return &Model{m, sync.OnceValues(func() (*chat.Layout, error) {
		if m.Tokenizer == nil {
			return nil, errNoTokenizer
		}
		return chat.New(m.Tokenizer)
	})}
}

// Close stops the model's workers. No generation may be under way.
func (m *Model) Close() error { return m.m.Close() }

// Config is the model's shape.
func (m *Model) Config() model.Config { return m.m.Config }

// Context is the most tokens that prompt and output may have together.
func (m *Model) Context() int { return m.m.Context() }

// Threads is the number of workers of a pass.
func (m *Model) Threads() int { return m.m.Threads() }

// WeightBytes is the size of the weights that every pass reads.
func (m *Model) WeightBytes() int { return m.m.WeightBytes() }

// Tokenizer is the model's own; nil where its file has none.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.m.Tokenizer }

// Tokenize returns the tokens of a prompt as Generate reads it: with the token that begins a text, where
// the model wants one, and with names of special tokens taken as those tokens.
func (m *Model) Tokenize(prompt string) ([]int32, error) {
	if err := validText("Prompt", prompt); err != nil {
		return nil, err
	}
	t := m.m.Tokenizer
	if t == nil {
		return nil, errNoTokenizer
	}
	return t.Encode(prompt, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}), nil
}

// drafter makes the drafter that text describes; nil for none.
func (m *Model) drafter(text string) (draft.Drafter, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	d, err := draft.New(text, draft.Target{Vocab: m.m.Config.Vocab, Context: m.m.Context()})
	if err != nil {
		return nil, optionf("Drafter", "%v, or none", err)
	}
	return d, nil
}
