package model

import (
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tokenizer"
)

// Model is an open model. It is immutable and safe for concurrent use; the state of a computation
// is in its Pass and its caches.
type Model struct {
	Network
	Tokenizer *tokenizer.Tokenizer // nil if the file has none

	limit int // most tokens in a sequence
	pool  *par.Pool
	guest bool // the pool belongs to another model
	pages nn.Pages
}

// Shallow returns m with the given number of layers over w instead of its own: embedding, last
// norm, output and workers are those of m, which must outlive it. Layers of m must be alike.
func (m *Model) Shallow(layers int, w Weights) (*Model, error) {
	s := &Model{Network: m.Network, Tokenizer: m.Tokenizer, limit: m.limit, pool: m.pool, guest: true}
	s.Config.Layers, s.Config.Ahead = layers, 0
	s.Config.Loops = 0
	var err error
	if s.Blocks, err = NewBlocks(&s.Config, w); err != nil {
		return nil, err
	}
	s.Config.layOutPages(&s.pages, s.Blocks, nn.KVAuto)
	return s, nil
}

// Context is the most tokens that a sequence may have.
func (m *Model) Context() int { return m.limit }

// Threads is the number of workers in a pass.
func (m *Model) Threads() int { return m.pool.Threads() }

// NewCache returns an empty cache for one sequence.
func (m *Model) NewCache() *nn.Cache { return m.pages.NewCache() }

// KV is the type in which its caches store keys and values, and CacheBytes their memory per token.
// CacheRead is how many bytes of them a pass reads after the given number of tokens.
func (m *Model) KV() nn.KVType            { return m.pages.KV }
func (m *Model) CacheBytes() int          { return m.pages.RowBytes() }
func (m *Model) CacheRead(tokens int) int { return m.pages.ReadBytes(tokens) }

// Pool returns the model's workers, for work related to its passes.
func (m *Model) Pool() *par.Pool { return m.pool }

// Close stops the model's workers, if they are its own. Weights are freed with the last reference to the model.
func (m *Model) Close() error {
	if !m.guest {
		m.pool.Close()
	}
	return nil
}
