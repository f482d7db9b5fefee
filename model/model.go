package model

import (
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tokenizer"
)

// Model is an open model. It is immutable and safe for use by many goroutines; what a
// computation changes is in its Pass and its caches.
type Model struct {
	Config    Config
	Tokenizer *tokenizer.Tokenizer // nil where the file has none

	limit  int // most tokens of a sequence
	pool   *par.Pool
	pages  nn.Pages
	embed  nn.Table
	blocks []nn.Block
	norm   nn.Norm
	head   nn.Linear
	rope   *nn.Rope
}

// build lists the model's parts to the loader.
func (m *Model) build(l *loader) {
	c := &m.Config
	m.rope = nn.NewRope(c.Rope.frequencies(), c.Rope.Neighbours)
	if c.Tied {
		head := l.matrix("token_embd.weight", c.Vocab, c.Hidden)
		m.head, m.embed = nn.Linear{W: head}, head
	} else {
		m.head = l.linear("output", c.Vocab, c.Hidden)
		m.embed = l.table("token_embd.weight", c.Vocab, c.Hidden)
	}
	m.norm = l.norm("output_norm", c.Hidden)
	for i := range c.Layers {
		if l.err != nil {
			return
		}
		m.blocks = append(m.blocks, m.block(l, i))
	}
}

func (m *Model) block(l *loader, i int) nn.Block {
	c := &m.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	name := func(part string) string { return layerName(i, part) }
	b := nn.Block{
		AttnNorm: l.norm(name("attn_norm"), c.Hidden),
		MLPNorm:  l.norm(name("ffn_norm"), c.Hidden),
		Attn:     nn.Attention{Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim, Rope: m.rope},
		Out:      l.linear(name("attn_output"), c.Hidden, q),
		MLP: nn.MLP{
			Up:   l.linear(name("ffn_up"), c.FFN, c.Hidden),
			Down: l.linear(name("ffn_down"), c.Hidden, c.FFN),
		},
		Parallel: c.Parallel,
	}
	if c.Arch == "gptneox" {
		b.QKV = []nn.Linear{l.linear(name("attn_qkv"), q+2*kv, c.Hidden)}
		return b
	}
	b.QKV = []nn.Linear{
		l.linear(name("attn_q"), q, c.Hidden),
		l.linear(name("attn_k"), kv, c.Hidden),
		l.linear(name("attn_v"), kv, c.Hidden),
	}
	gate := l.linear(name("ffn_gate"), c.FFN, c.Hidden)
	b.MLP.Gate = &gate
	if c.Arch == "qwen3" {
		qn, kn := l.norm(name("attn_q_norm"), c.HeadDim), l.norm(name("attn_k_norm"), c.HeadDim)
		b.Attn.QNorm, b.Attn.KNorm = &qn, &kn
	}
	return b
}

// Context is the most tokens a sequence may have.
func (m *Model) Context() int { return m.limit }

// Threads is the number of workers of a pass.
func (m *Model) Threads() int { return m.pool.Threads() }

// NewCache returns an empty cache for one sequence.
func (m *Model) NewCache() *nn.Cache { return m.pages.NewCache() }

// WeightBytes is the size of the packed weights that every pass reads.
func (m *Model) WeightBytes() int {
	n := m.head.W.Bytes()
	for i := range m.blocks {
		b := &m.blocks[i]
		for _, l := range append([]nn.Linear{b.Out, b.MLP.Up, b.MLP.Down}, b.QKV...) {
			n += l.W.Bytes()
		}
		if b.MLP.Gate != nil {
			n += b.MLP.Gate.W.Bytes()
		}
	}
	return n
}

// Close stops the model's workers. Weights go with the last reference to the model.
func (m *Model) Close() error {
	m.pool.Close()
	return nil
}
