package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// LatentConfig is the shape of multi-head latent attention. Its heads share one head of keys,
// HeadDim wide: a latent vector, which is also the value, and Rope.Dims rotated dimensions.
type LatentConfig struct {
	Rank      int // dimensions of the latent vector; 0: attention is not latent
	QueryRank int // of the input of queries; 0: they read the layer's input
	PlainDim  int // dimensions of a head's query that are not rotated
	ValueDim  int // of a head's value
}

// SetLatent gives the model latent attention.
func (c *Config) SetLatent(l LatentConfig) {
	c.Latent = l
	c.HeadDim = l.Rank + c.Rope.Dims
	c.KVHeads = 1
}

// validateLatent checks the shape of latent attention.
func (c *Config) validateLatent() error {
	l := &c.Latent
	if l.Rank == 0 {
		return nil
	}
	for _, f := range []struct {
		what      string
		v, lo, hi int
	}{
		{"latent vector", l.Rank, 2, maxWidth},
		{"vector that queries are made of", l.QueryRank, 0, maxWidth},
		{"key but for rotated dimensions", l.PlainDim, 1, maxWidth / maxHeads},
		{"value", l.ValueDim, 1, maxWidth / maxHeads},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("width of a head's %s is %d: want %d to %d", f.what, f.v, f.lo, f.hi)
		}
	}
	if c.HeadDim != l.Rank+c.Rope.Dims || c.KVHeads != 1 {
		return fmt.Errorf("latent attention with %d key/value heads of %d dimensions: want 1 of %d, the latent vector's %d and the rotated %d",
			c.KVHeads, c.HeadDim, l.Rank+c.Rope.Dims, l.Rank, c.Rope.Dims)
	}
	return nil
}

// latentScale is the factor of the scores. YaRN multiplies the scores, not the rotated dimensions.
func (c *Config) latentScale() float32 {
	s := 1 / math.Sqrt(float64(c.Latent.PlainDim+c.Rope.Dims))
	if y := c.Rope.Yarn; y != nil {
		m := 1 + y.LogMul/10*math.Log(max(1, c.Rope.Scale))
		s *= m * m
	}
	return float32(s)
}

// latentEps is the epsilon of the norms within latent attention, whatever that of the other norms
// is. llama.cpp uses the file's for all.
const latentEps = 1e-6

// latent builds the products of latent attention.
func (b *builder) latent(i int, name func(part string) string) *nn.Latent {
	c := b.c
	d := func(of dim) int { return c.size(of, i) }
	norm := func(part string, n int) nn.Norm {
		x := b.norm(name(part), n)
		x.Eps = latentEps
		return x
	}
	each := func(part string, rows, in int) []nn.Linear {
		list := make([]nn.Linear, c.Heads)
		for h := range list {
			list[h] = b.rows(name(part)+".weight", []int{c.Heads, rows, in}, h*rows, (h+1)*rows)
		}
		return list
	}
	l := &nn.Latent{Down: b.linear(name("attn_kv_a_mqa"), d(latentKey), c.Hidden)}
	l.Norm = norm("attn_kv_a_norm", d(latentRank))
	if whole := name("attn_kv_b") + ".weight"; b.part(i, "attn_kv_b") != nil {
		plain, both := d(latentPlain), d(latentPlain)+d(latentValue)
		for at := 0; at < d(latentHeads); at += both {
			shape := []int{d(latentHeads), d(latentRank)}
			l.KeyUp = append(l.KeyUp, b.slice(Slicer.Columns, whole, shape, at, at+plain))
			l.ValueUp = append(l.ValueUp, b.rows(whole, shape, at+plain, at+both))
		}
	} else {
		l.KeyUp = each("attn_k_b", d(latentRank), d(latentPlain))
		l.ValueUp = each("attn_v_b", d(latentValue), d(latentRank))
	}
	if c.Latent.QueryRank == 0 {
		l.Query = b.linear(name("attn_q"), d(latentQueries), c.Hidden)
		return l
	}
	l.QueryDown = new(b.linear(name("attn_q_a"), d(latentQueryRank), c.Hidden))
	l.QueryNorm = new(norm("attn_q_a_norm", d(latentQueryRank)))
	l.Query = b.linear(name("attn_q_b"), d(latentQueries), d(latentQueryRank))
	return l
}

// Folders have the two matrices of a head one after the other in one tensor: that of its keys as
// (PlainDim, Rank), which is transposed in GGUF files, and that of its values.

// fromHeads returns the part, read from the folder's tensor t.
func (p *Part) fromHeads(t tensor.Tensor) (tensor.Tensor, error) {
	keys := p.Half == 1
	plain, rank := p.Split-p.Rows, p.Cols
	if keys {
		plain, rank = p.Cols, p.Rows
	}
	if err := wantShape(t, p.Experts*p.Split, rank); err != nil {
		return t, err
	}
	if keys {
		t = withoutBlocks(t) // they are transposed
	}
	x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{p.Experts, p.Rows, p.Cols}}
	size, row := t.RowBytes(), x.RowBytes()
	if !keys {
		x.Reader = runs(row, p.Rows, func(h int) (tensor.Tensor, int) { return t, h*p.Split + plain })
		return x, x.Check()
	}
	x.Reader = func(dst []byte, r0, r1 int) error {
		head, data := -1, make([]byte, plain*size)
		for r := r0; r < r1; r++ {
			h := r / rank
			if h != head {
				if err := t.ReadRows(data, h*p.Split, h*p.Split+plain); err != nil {
					return err
				}
				head = h
			}
			copyColumn(dst[(r-r0)*row:], data, r%rank, size, size/rank)
		}
		return nil
	}
	return x, x.Check()
}

// copyColumn copies column i of rows of rowBytes bytes, whose elements have width bytes.
func copyColumn(dst, rows []byte, i, rowBytes, width int) {
	for at := i * width; at < len(rows); at += rowBytes {
		dst = dst[copy(dst, rows[at:at+width]):]
	}
}

// intoHeads returns the folder's tensor for the two halves.
func (p *Part) intoHeads(ending string, keys, values tensor.Tensor) (list []tensor.Tensor, err error) {
	plain := p.Cols
	rank := p.Rows
	if err := wantShape(keys, p.Experts, rank, plain); err != nil {
		return nil, err
	}
	if err := wantShape(values, p.Experts, p.Split-plain, rank); err != nil {
		return nil, err
	}
	if hasBlocks(keys) || keys.Type != values.Type {
		keys, values = inF32(keys), inF32(values)
	}
	x := tensor.Tensor{Name: p.InFolder(ending), Type: values.Type, Shape: []int{p.Experts * p.Split, rank}}
	row, size := x.RowBytes(), keys.RowBytes()
	x.Reader = func(dst []byte, r0, r1 int) error {
		head, data := -1, make([]byte, rank*size)
		for r := r0; r < r1; r++ {
			h, i := r/p.Split, r%p.Split
			to := dst[(r-r0)*row:][:row]
			if i >= plain {
				at := h*(p.Split-plain) + i - plain
				if err := values.ReadRows(to, at, at+1); err != nil {
					return err
				}
				continue
			}
			if h != head {
				if err := keys.ReadRows(data, h*rank, (h+1)*rank); err != nil {
					return err
				}
				head = h
			}
			copyColumn(to, data, i, size, size/plain)
		}
		return nil
	}
	return []tensor.Tensor{x}, x.Check()
}

// denseFirst returns how many leading layers of those listed are dense; ok is false if later ones are too.
func denseFirst(kinds []string) (n int, ok bool) {
	n = slices.Index(kinds, "sparse")
	if n < 0 {
		n = len(kinds)
	}
	return n, !slices.Contains(kinds[n:], "dense")
}
